"""Parameters that a route doesn't have, or has once and gets twice, are refused.

Passed over, more would be read or written than was asked for.
"""

from typing import get_args, get_origin

from fastapi import Request
from fastapi.dependencies.models import Dependant

from rowcall.errors import DoesNotFit
from rowcall.model import Code


async def refuse_others(request: Request) -> None:
    """Let only those through that the route declares, itself or by what it depends on."""
    if not request.query_params:
        return
    taken = _taken(request.scope["route"].dependant)
    known = set(taken)
    others = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if others:
        listed = f"Known are: {', '.join(sorted(known))}." if known else "It takes none."
        filters = " Filters are written filter=field=value." if "filter" in known else ""
        wrong = [{"at": f"query/{name}", "message": "There is no such parameter"} for name in others]
        told = f"There is no parameter {others[0]!r}."
        raise DoesNotFit(Code.BAD_REQUEST, told, hint=listed + filters, errors=wrong)
    names = [name for name, _ in request.query_params.multi_items()]
    if doubled := [name for name in known if not taken[name] and names.count(name) > 1]:
        wrong = [{"at": f"query/{name}", "message": "It is given more than once"} for name in doubled]
        told = f"The parameter {doubled[0]!r} is given more than once."
        hint = "Write several with commas between: statuses=failed,skipped." if "statuses" in doubled else ""
        raise DoesNotFit(Code.BAD_REQUEST, told, hint=hint, errors=wrong)


def _taken(needs: Dependant) -> dict[str, bool]:
    """The parameters of a route, and whether each may come several times."""
    own = {each.alias: _is_list(each.field_info.annotation) for each in needs.query_params}
    for other in needs.dependencies:
        own |= _taken(other)
    return own


def _is_list(kind: object) -> bool:
    return get_origin(kind) is list or any(map(_is_list, get_args(kind)))
