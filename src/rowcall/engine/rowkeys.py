"""The key by which a row is known for ever: its declared key, else its content."""

import hashlib

import polars as pl

_LONGEST = 400  # characters; a longer key is kept as its hash, since an index entry holds 2,700 bytes


def row_keys(keys: tuple[tuple[str, ...], ...], rows: pl.DataFrame) -> pl.Series:
    """One key per row: the values of the first declared key that are all there, else a hash of all values."""
    # a natural key is no key, even where both read the same
    declared = [_joined(list(key)) if not place else "\x1d" + _joined(list(key)) for place, key in enumerate(keys)]
    content = _joined([name for name in rows.columns if name != "rowcall_number"], nulls="\x1e")
    parts = rows.select(
        pl.coalesce(declared).alias("key") if declared else pl.lit(None, pl.String).alias("key"),
        content.alias("content"),
    )
    texts = [
        key if key is not None and len(key) <= _LONGEST else _hash(key if key is not None else all_values)
        for key, all_values in parts.iter_rows()
    ]
    return pl.Series(texts, dtype=pl.String)


def _joined(names: list[str], nulls: str | None = None) -> pl.Expr:
    values = [pl.col(name) if nulls is None else pl.col(name).fill_null(nulls) for name in names]
    return pl.concat_str(values, separator="\x1f")


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
