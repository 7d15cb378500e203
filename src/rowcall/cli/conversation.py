"""What a job asks at a terminal: its columns, its values, its plan. Elsewhere it waits, and says how to go on."""

from collections.abc import Callable, Collection

from rowcall.cli.ask_columns import settle_columns
from rowcall.cli.ask_plan import settle_fingerprint, settle_plan
from rowcall.cli.ask_values import settle_values
from rowcall.cli.desk import Desk
from rowcall.cli.prompt import Left, can_ask
from rowcall.cli.screen import screen
from rowcall.client.answers import Job
from rowcall.errors import Final
from rowcall.model import Code, State

_SETTLES: dict[str, tuple[str, Callable[[Desk, Job], Job]]] = {
    State.COLUMN_MAPPING: ("confirm", settle_columns),
    State.CELL_MAPPING: ("confirm", settle_values),
    State.FINGERPRINT_WARN: ("acknowledge", settle_fingerprint),
    State.VALIDATED: ("submit", settle_plan),
}
"""Where somebody is asked, what takes the job on from there, and the questions."""
_MEANWHILE = (Code.WRONG_STATE, Code.SUPERSEDED)


def waits(state: str, allowed: Collection[str]) -> bool:
    """Whether a job waits for somebody to say something."""
    return state in _SETTLES and _SETTLES[state][0] in allowed


def is_asked(state: str, allowed: Collection[str], *, as_json: bool) -> bool:
    """Whether a job waits for what somebody at this terminal can say."""
    return not as_json and waits(state, allowed) and can_ask()


def answered(at: Desk, job: Job, *, as_json: bool) -> bool:
    """Whether a job that waits was answered, and goes on; it waits for longer where nobody is there or they leave."""
    if not is_asked(job.state, job.allowed, as_json=as_json):
        return False
    try:
        _SETTLES[job.state][1](at, job)
    except (Left, KeyboardInterrupt):
        return False
    except Final as error:
        if error.code not in _MEANWHILE:
            raise
        screen().print(error.message, markup=False)  # somebody else was faster: see where it is now
    return True
