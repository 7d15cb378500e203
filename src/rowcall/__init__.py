"""Rowcall: bulk data into and out of PostgreSQL, with every row accounted for."""

from importlib.metadata import version

__version__ = version("rowcall")
__all__ = ["__version__"]
