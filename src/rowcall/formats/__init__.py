"""Files become rows, and rows files."""
