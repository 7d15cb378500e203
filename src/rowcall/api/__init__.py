"""Rowcall over HTTP."""
