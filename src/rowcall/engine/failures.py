"""What went wrong, in Rowcall's words."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rowcall.errors import Final, RowcallError
from rowcall.model import Code

if TYPE_CHECKING:  # the list of commands does without
    from rowcall.importer import Importer


def failure_of(error: Exception) -> RowcallError:
    """An error of ours as it is, one of the system or the database translated, anything else as a mistake of ours."""
    if isinstance(error, RowcallError):
        return error
    if isinstance(error, OSError):
        where = f" ({error.filename})" if error.filename else ""
        return Final(Code.SYSTEM_ERROR, f"The system refused: {error.strerror or error}{where}.")
    import psycopg  # whoever raised its errors has loaded it; the list of commands does without

    if isinstance(error, psycopg.Error):
        from rowcall.store.db import translated

        return translated(error)
    hint = "This is a bug: please report it, with what ROWCALL_DEBUG=1 prints in addition."
    return Final(Code.INTERNAL_ERROR, f"{type(error).__name__}: {error}", hint=hint)


@contextmanager
def own_code(importer: "type[Importer]", what: str) -> Generator[None]:
    """Meanwhile an importer's own code runs: what it raises is told as its mistake, not as one of ours."""
    try:
        yield
    except RowcallError:
        raise
    except Exception as error:
        import psycopg  # as above

        if isinstance(error, psycopg.Error):  # may pass
            raise
        raise importer_failed(importer, what, error) from error


def importer_failed(importer: "type[Importer]", what: str, error: BaseException) -> Final:
    """What to say of an error that an importer's own code raised."""
    said = str(error).strip().partition("\n")[0]
    return Final(
        Code.IMPORTER_FAILED,
        f"{what} of importer {importer.name} raised {type(error).__name__}{f': {said}' if said else ''}.",
        hint="Mend its code, then resume the job: what is done stays done.",
        over_http="Whoever runs the service has to mend its code; then the job can be resumed.",
    )


def failure_document(error: RowcallError) -> dict[str, str]:
    """An error for a program."""
    return error.told(over_http=False)
