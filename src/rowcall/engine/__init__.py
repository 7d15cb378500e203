"""What becomes of a file's rows: one module per step, from ingest to commit."""
