"""What would become of each row, shown before anything is written, and held against the commit."""
