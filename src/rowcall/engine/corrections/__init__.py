"""Rows that people correct, or want tried again."""
