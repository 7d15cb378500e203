"""The command line."""

from rowcall.cli.app import main

__all__ = ["main"]
