"""What can go wrong with the work itself (wrong data is not an error but an issue).

RowcallError
├── Retryable        the same call may succeed later: a server was away, a lock was held
└── Final            it won't: say so, stop
    ├── FileRefused  this file can't be read (or written) as asked; the message says where and what to do
    └── WrongState   the job is not where this could be done; it says where it is and what can be
"""

from collections.abc import Sequence


class RowcallError(Exception):
    """An error with a stable code, a sentence for a person, and what to do about it."""

    def __init__(self, code: str, message: str, *, hint: str = "") -> None:
        super().__init__(code, message, hint)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.code, self.message, self.hint)


def _rebuild(kind: type[RowcallError], code: str, message: str, hint: str) -> RowcallError:
    return kind(code, message, hint=hint)


class Retryable(RowcallError):
    """Trying again later may work."""


class Final(RowcallError):
    """Trying again will fail in the same way."""


class FileRefused(Final):
    """The file can't be read or written as asked."""


class WrongState(Final):
    """The job is in a state in which this is not possible."""

    def __init__(
        self, code: str, message: str, *, hint: str = "", state: str = "", allowed: Sequence[str] = ()
    ) -> None:
        super().__init__(code, message, hint=hint)
        self.state = state
        self.allowed = list(allowed)
