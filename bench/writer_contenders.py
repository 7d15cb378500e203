"""Writers: a frame of text, already in memory, to a file. Rowcall gets it in batches, as its readers give them."""

from pathlib import Path

import polars as pl

import files
from trial import Run, Tally
