"""Random delimited bytes, read with blocks of every size: nothing lost, nothing glued, always the same outcome."""

import io
import random
from dataclasses import replace

import pytest

from rowcall.formats import Column, Limits
from rowcall.formats.csv import reader as csv_reader
from rowcall.formats.csv.blocks import Layout
from rowcall.formats.csv.reader import DelimitedReader
from rowcall.formats.csv.records import Dialect

WIDTH = 3
Piece = tuple[int, int, str, tuple[str, ...], bytes]

PARTS = ["a", "b", "1", '"', '"', '""', ",", ",", ",", "\n", "\n", "\r\n", '"a"', '"a,b"', '"x\ny"', "é", "\n\n"]
ODD_PARTS = [" ", "h,h,h\n", "'", "'=", "\ufeff"]

DIALECTS = [
    pytest.param(Layout(Dialect(), WIDTH), [], id="usual"),
    pytest.param(Layout(Dialect(bare_cr=True), WIDTH), ["\r", "\r"], id="bare CR"),
    pytest.param(Layout(Dialect(backslash=True), WIDTH), ["\\", '\\"', "\\,"], id="backslash"),
    pytest.param(Layout(Dialect(spaced=True), WIDTH), [', "x, y"'], id="spaced"),
    pytest.param(Layout(Dialect(quote=b""), WIDTH), [], id="no quotes"),
    pytest.param(Layout(Dialect(delimiter=b"||"), WIDTH), ["||", "||"], id="long delimiter"),
    pytest.param(Layout(Dialect(), WIDTH, comment=b"#"), ["#", "\n#"], id="comments"),
    pytest.param(Layout(Dialect(), WIDTH, trailing=True), [",\n"], id="trailing delimiter"),
    pytest.param(Layout(Dialect(), WIDTH, pad=True), [",\n"], id="padded"),
]


@pytest.mark.parametrize(("layout", "parts"), DIALECTS)
@pytest.mark.parametrize("seed", range(2))
def test_any_block_size_gives_the_same_records_and_every_byte(
    layout: Layout, parts: list[str], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    chance = random.Random(seed)
    for _ in range(15):
        data = _bytes(chance, PARTS + ODD_PARTS + parts)
        whole = _pieces(data, layout, 2**20, monkeypatch)
        assert b"".join(raw for *_, raw in whole) == data
        numbers = [number for number, *_ in whole if number]
        assert numbers == list(range(1, len(numbers) + 1))
        for size in {1, 2, 3, 7, chance.randint(1, 60)}:
            assert _pieces(data, layout, size, monkeypatch) == whole, (data, size)


def _bytes(chance: random.Random, parts: list[str]) -> bytes:
    data = "".join(chance.choice(parts) for _ in range(chance.randint(0, 60))).encode()
    if chance.random() < 0.2:
        at = chance.randint(0, len(data))
        data = data[:at] + chance.choice([b"\xff", b"\0", b"\xef\xbb\xbf", b"\r"]) + data[at:]
    return data


def _pieces(data: bytes, layout: Layout, block: int, monkeypatch: pytest.MonkeyPatch) -> list[Piece]:
    """Each record and skipped line: number, line, what it is, its cells, its bytes."""
    monkeypatch.setattr(csv_reader, "BLOCK_BYTES", block)
    width = WIDTH - layout.trailing
    columns = [Column(i, f"c{i}", f"c{i}") for i in range(width)]
    layout = replace(layout, header=("h",) * width)
    pieces: list[Piece] = []
    for batch in DelimitedReader(layout, columns, Limits()).batches(io.BytesIO(data).read):
        for row, number, line, raw in zip(batch.frame.rows(), batch.numbers, batch.lines, batch.raw, strict=True):
            pieces.append((number, line, "row", row, raw))
        pieces += [(b.number, b.line, b.code, b.cells, b.raw) for b in batch.bad]
        for run in batch.skipped:
            lines = io.BytesIO(run.raw).readlines() if not layout.dialect.bare_cr else [run.raw]
            pieces += [(0, run.line + i, run.kind, (), raw) for i, raw in enumerate(lines)]
    pieces.sort(key=lambda piece: (piece[1], piece[0]))
    return _joined(pieces) if layout.dialect.bare_cr else pieces


def _joined(pieces: list[Piece]) -> list[Piece]:
    """Neighbouring runs of the same kind as one: how they are cut depends on the blocks."""
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece[0] == 0 == joined[-1][0] and joined[-1][2] == piece[2]:
            joined[-1] = (*joined[-1][:4], joined[-1][4] + piece[4])
        else:
            joined.append(piece)
    return joined
