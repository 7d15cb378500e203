"""Delimited text: CSV, TSV and their kin."""
