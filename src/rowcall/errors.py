"""What can go wrong with the work itself (wrong data is not an error but an issue).

RowcallError
├── Retryable              the same call may succeed later: a server was away, a lock was held
│   └── ServerUnavailable  a Rowcall server can't be reached, or has no time
└── Final                  it won't: say so, stop
    ├── FileRefused        this file can't be read (or written) as asked; the message says where and what to do
    ├── WrongState         the job is not where this could be done; it says where it is and what can be
    ├── NotSettled         a person has to say more before the job can go on; it says what
    ├── DoesNotFit         a request has parts that don't fit; it says which
    ├── PlanStale          the plan that was agreed to isn't the job's any more; it says which is
    └── RequestRefused     a Rowcall server refuses what it was asked for
"""

from collections.abc import Mapping, Sequence
from typing import Any


class RowcallError(Exception):
    """An error with a stable code, a sentence for a person, and what to do about it."""

    def __init__(self, code: str, message: str, *, hint: str = "", over_http: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint
        self.over_http = over_http
        """The hint for those who came over HTTP, where commands would be of no use to them."""

    def told(self, *, over_http: bool) -> dict[str, str]:
        """What is kept or sent of it, with the hint for those who are to read it.

        They may use the command line with a server: it shows `commandHint`, where there is one.
        """
        told = {"code": self.code, "message": self.message, "hint": self.hint}
        if over_http and self.over_http and self.hint:
            return {**told, "hint": self.over_http, "commandHint": self.hint}
        return {**told, "hint": self.over_http} if over_http and self.over_http else told

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), vars(self))


def _rebuild(kind: type[RowcallError], told: dict[str, Any]) -> RowcallError:
    return kind(**told)


class Retryable(RowcallError):
    """Trying again later may work."""


class Final(RowcallError):
    """Trying again will fail in the same way."""


class FileRefused(Final):
    """The file can't be read or written as asked."""


class WrongState(Final):
    """The job is in a state in which this is not possible."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        over_http: str = "",
        state: str = "",
        allowed: Sequence[str] = (),
        job: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(code, message, hint=hint, over_http=over_http)
        self.state = state
        self.allowed = list(allowed)
        self.job = job
        """The other job that is in the way: its id and number."""


class UnsupportedEncoding(Final):
    """A body is packed in a way that isn't taken."""

    def __init__(self, code: str, message: str, *, hint: str = "", taken: str) -> None:
        super().__init__(code, message, hint=hint)
        self.taken = taken
        """Those that are, as in Accept-Encoding."""


class NotSettled(Final):
    """Something is open that the job can't go on without."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        over_http: str = "",
        missing: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(code, message, hint=hint, over_http=over_http)
        self.missing = list(missing)


class DoesNotFit(Final):
    """A request has parts that don't fit what is expected."""

    def __init__(
        self, code: str, message: str, *, hint: str = "", over_http: str = "", errors: Sequence[Mapping[str, str]] = ()
    ) -> None:
        super().__init__(code, message, hint=hint, over_http=over_http)
        self.errors = list(errors)
        """Each with its place, `at`, and a `message`."""


class PlanStale(Final):
    """What was agreed to is not what would happen now."""

    def __init__(self, code: str, message: str, *, hint: str = "", digest: str = "") -> None:
        super().__init__(code, message, hint=hint)
        self.digest = digest


class ServerUnavailable(Retryable):
    """A server can't be reached, or says that it has no time now."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        over_http: str = "",
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float = 0,
    ) -> None:
        super().__init__(code, message, hint=hint, over_http=over_http)
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds that the server wants to be left alone."""


class RequestRefused(Final):
    """A server refuses a request, or would: the same again is refused again."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        over_http: str = "",
        status: int | None = None,
        request_id: str | None = None,
        command_hint: str = "",
        allowed: Sequence[str] = (),
        errors: Sequence[Mapping[str, str]] = (),
        missing: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(code, message, hint=hint, over_http=over_http)
        self.missing = list(missing)
        """What is open that the job can't go on without."""
        self.command_hint = command_hint
        """What to do about it on the command line, where that is something else."""
        self.status = status
        """What the server answered; None where it was not asked."""
        self.request_id = request_id
        self.allowed = list(allowed)
        """What can be asked of the job instead, where its state is the reason."""
        self.errors = list(errors)
        """Each part of the request that doesn't fit: `at` and `message`."""
