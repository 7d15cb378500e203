"""A stored file that is not what was stored is refused before any of its rows comes in (FAULTS.md, K27)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from rowcall.errors import Final
from rowcall.model import Code

from .conftest import NewTrial


def _missing(file: Path) -> None:
    file.unlink()


def _truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def _flipped(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize("damage", [_missing, _truncated, _flipped])
def test_damaged_file_is_refused_whole(new_trial: NewTrial, damage: Callable[[Path], None]) -> None:
    trial = new_trial()
    damage(trial.data / "files" / (trial.job.file_location or ""))
    with pytest.raises(Final) as refused:
        trial.run_to_the_end()
    assert refused.value.code == Code.FILE_CORRUPT
    assert trial.state() == "FAILED"
    assert trial.sql("SELECT last_error ->> 'code' FROM rowcall.job") == [Code.FILE_CORRUPT]
    assert trial.sql("SELECT count(*) FROM rowcall.row") == [0]
