"""The readers' and writers' benchmark."""
