"""Whether a server can take work."""

from rowcall.client.answers.wire import Wire


class Check(Wire, frozen=True):
    """What a server found of one thing that it stands on."""

    ok: bool
    required: bool = True
    """Whether it can't take work without it."""
    detail: str = ""


class Readiness(Wire, frozen=True):
    """`ready`; `degraded`: work is taken, but nobody does it; `unready`: no work can be taken."""

    status: str
    checks: dict[str, Check]
