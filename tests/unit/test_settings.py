"""Settings come from the environment or the project's file, and what is wrong with one is told."""

from pathlib import Path

import pytest

from rowcall.config import limits_from, settings_from
from rowcall.errors import Final


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    return tmp_path / "rowcall.toml"


def test_b12_the_file_sets_what_the_environment_does_not(project: Path) -> None:
    said = ("[settings]", "workers = 4", 'pool_size = "7"', 'data_dir = "var"', "limit_columns = 9")
    project.write_text("\n".join([*said, 'retention_ended_days = "never"']))
    settings = settings_from({"ROWCALL_WORKERS": "3"})
    assert (settings.workers, settings.pool_size, settings.limits.columns) == (3, 7, 9)
    assert settings.data_dir == project.parent / "var"
    assert settings.retention_ended_days is None
    assert limits_from({}).columns == 9


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("[settings]\nwrokers = 4", r"rowcall.toml: wrokers means nothing to Rowcall. Did you mean 'workers'\?"),
        ("[settings]\nworkers = 0", r"rowcall.toml: workers is '0'; a whole number from 1 is expected"),
        ("[settings]\nworkers = true", "workers is True; a text or a number is expected"),
        ("[settings]\ndebug = 1", "debug means nothing"),
        ("settings = 4", "a table is expected"),
        ("[setings]\nworkers = 4", r"'setings' means nothing to Rowcall. Did you mean 'settings'\?"),
    ],
)
def test_what_is_wrong_in_the_file_is_told(project: Path, said: str, told: str) -> None:
    project.write_text(said)
    with pytest.raises(Final, match=told) as raised:
        settings_from({})
    assert raised.value.code == "BAD_SETTING"


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ROWCALL_WORKER": "4"}, r"ROWCALL_WORKER means nothing to Rowcall. Did you mean 'ROWCALL_WORKERS'\?"),
        ({"ROWCALL_LOG_LEVEL": "loud"}, "ROWCALL_LOG_LEVEL is 'loud'; one of debug, info, warning, error is expected"),
        ({"ROWCALL_RETENTION_ENDED_DAYS": "0"}, "ROWCALL_RETENTION_ENDED_DAYS is '0'; a number of days from 1"),
        ({"ROWCALL_POOL_SIZE": "many"}, "ROWCALL_POOL_SIZE is 'many'; a whole number from 1 is expected"),
    ],
)
def test_what_is_wrong_in_the_environment_is_told(given: dict[str, str], told: str) -> None:
    with pytest.raises(Final, match=told):
        settings_from(given)


def test_variables_that_kubernetes_sets_for_a_service_are_let_be() -> None:
    settings_from(
        {
            "ROWCALL_SERVICE_HOST": "10.0.0.1",
            "ROWCALL_SERVICE_PORT_HTTP": "8765",
            "ROWCALL_PORT": "tcp://10.0.0.1:8765",
            "ROWCALL_PORT_8765_TCP_ADDR": "10.0.0.1",
            "ROWCALL_API_SERVICE_HOST": "10.0.0.2",
        }
    )
