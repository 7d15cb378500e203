"""Rowcall's tables, and the PostgreSQL they are in."""
