"""Rowcall."""
