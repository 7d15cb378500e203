"""Works on jobs in the background."""
