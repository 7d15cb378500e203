"""What requests are refused with, over the wire."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from rowcall.api.models.jobs import OtherJob
from rowcall.api.models.wire import Wire


class Wrong(Wire):
    """What doesn't fit in a request."""

    at: str
    """Where: `query/pageSize`, `body/config/mode`."""
    message: str


class Problem(BaseModel):
    """An error, as RFC 9457 has it. There may be more in it than is told here."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    type: Literal["about:blank"]
    title: str
    """What the status means."""
    status: int
    code: str
    """Stable: branch on this."""
    detail: str
    """What went wrong, for a person."""
    hint: str = ""
    """What to do about it."""
    command_hint: str = ""
    """The same for those who use the command line, where that is something else."""
    state: str = ""
    """Where a job or an export is that can't be moved so."""
    allowed: list[str] = []
    """How it can be moved."""
    job: OtherJob | None = None
    """The other job that is in the way."""
    missing: list[dict[str, Any]] = []
    """What has to be said before a job can go on."""
    errors: list[Wrong] = []
    """All that doesn't fit in the request."""
    digest: str = ""
    """The plan that a job has now, where another was submitted."""
