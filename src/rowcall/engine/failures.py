"""What went wrong, in Rowcall's words."""

from rowcall.errors import Final, RowcallError
from rowcall.model import Code


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


def failure_document(error: RowcallError) -> dict[str, str]:
    """An error for a program."""
    return error.told(over_http=False)
