"""Parameters that a route doesn't have are refused: passed over, more would be read or written than was asked for."""

from fastapi import Request
from fastapi.dependencies.models import Dependant

from rowcall.errors import DoesNotFit
from rowcall.model import Code


async def refuse_others(request: Request) -> None:
    """Let only those through that the route declares, itself or by what it depends on."""
    if not request.query_params:
        return
    known = _known(request.scope["route"].dependant)
    others = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if others:
        listed = f"Known are: {', '.join(sorted(known))}." if known else "It takes none."
        filters = " Filters are written filter=field=value." if "filter" in known else ""
        wrong = [{"at": f"query/{name}", "message": "There is no such parameter"} for name in others]
        told = f"There is no parameter {others[0]!r}."
        raise DoesNotFit(Code.BAD_REQUEST, told, hint=listed + filters, errors=wrong)


def _known(needs: Dependant) -> set[str]:
    return {each.alias for each in needs.query_params}.union(*map(_known, needs.dependencies))
