"""Places whose name also fits another place's parameter: `/items/replace` is no row of `/items/{row}`."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fastapi import Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.routing import BaseRoute

_PARAMETER = re.compile(r"\{[^}]*\}")


@dataclass(frozen=True, slots=True)
class Places:
    """The places of a service that are in its document."""

    methods: Mapping[str, Sequence[str]]
    nearer: Mapping[str, Sequence[tuple[re.Pattern[str], str]]]
    """For each place, others whose names would fit it."""
    heads: Sequence[re.Pattern[str]]
    """Those that answer HEAD in a way of their own."""

    @classmethod
    def of(cls, routes: Iterable[BaseRoute]) -> "Places":
        methods: dict[str, set[str]] = {}
        for route in routes:
            if isinstance(route, APIRoute) and route.include_in_schema:
                methods.setdefault(route.path_format, set()).update(route.methods or ())
        patterns = {place: re.compile(_PARAMETER.sub("[^/]+", place)) for place in methods}
        nearer = {
            place: [(own, other) for other, own in patterns.items() if other != place and pattern.fullmatch(other)]
            for place, pattern in patterns.items()
        }
        heads = [patterns[place] for place, found in methods.items() if "HEAD" in found]
        told = {place: sorted(found | ({"HEAD"} if "GET" in found else set())) for place, found in methods.items()}
        return cls(told, nearer, heads)

    def has_head(self, path: str) -> bool:
        """Whether HEAD is something else than GET without a body there."""
        return any(pattern.fullmatch(path) for pattern in self.heads)

    def asked_for(self, request: Request) -> str:
        """The place of a request: of those that fit, the one named most exactly."""
        found = getattr(request.scope.get("route"), "path_format", "")
        nearer = self.nearer.get(found, ())
        return next((place for pattern, place in nearer if pattern.fullmatch(request.url.path)), found)


async def refuse_misplaced(request: Request) -> None:
    """Refuse a method that a place doesn't have, though another has it that the name would fit."""
    places: Places = request.app.state.places
    if places.asked_for(request) != request.scope["route"].path_format:
        raise HTTPException(405)


def methods_of(request: Request) -> Sequence[str]:
    """The methods of the place that was asked for. Each has a route of its own, and Starlette knows the first only."""
    places: Places = request.app.state.places
    return places.methods.get(places.asked_for(request), ())
