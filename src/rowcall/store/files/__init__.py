"""Files that all processes share: in a folder or a bucket, whole or in pieces."""
