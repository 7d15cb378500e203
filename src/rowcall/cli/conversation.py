"""What a job asks at a terminal: its columns, then its values. Elsewhere it waits, and says how to go on."""

from rowcall.cli.ask_columns import settle_columns
from rowcall.cli.ask_values import settle_values
from rowcall.cli.desk import Desk
from rowcall.cli.prompt import Left, can_ask
from rowcall.client.answers import Job
from rowcall.model import State

_SETTLES = {State.COLUMN_MAPPING: settle_columns, State.CELL_MAPPING: settle_values}


def waits(job: Job) -> bool:
    """Whether a job waits for somebody to say something."""
    return job.state in _SETTLES and "confirm" in job.allowed


def answered(at: Desk, job: Job, *, as_json: bool) -> bool:
    """Whether a job that waits was answered, and goes on; it waits for longer where nobody is there or they leave."""
    if as_json or not waits(job) or not can_ask():
        return False
    try:
        _SETTLES[State(job.state)](at, job)
    except Left:
        return False
    return True
