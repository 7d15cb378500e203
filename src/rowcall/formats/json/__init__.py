"""JSON: newline-delimited records and documents."""
