"""HEAD, wherever there is a GET: the same answer without its body, as load balancers and browsers ask for it."""

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowcall.api.places import Places


class Heads:
    """Has HEAD answered as GET, but for places with an answer of their own. What would stream ends before it begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD" or _places(scope).has_head(scope["path"]):
            await self._app(scope, receive, send)
            return
        inner: Scope = {**scope, "method": "GET", "state": {**scope["state"], "is_head": True}}
        begun, asked = asyncio.Event(), False

        async def received() -> Message:
            nonlocal asked
            if asked:  # whoever listens for the end of a stream hears of it as soon as its head is sent
                await begun.wait()
                return {"type": "http.disconnect"}
            asked = True
            return await receive()

        async def head_only(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                begun.set()

        try:
            await self._app(inner, received, head_only)
        finally:
            scope.update({name: inner[name] for name in ("route", "endpoint", "path_params") if name in inner})
        if begun.is_set():
            await send({"type": "http.response.body", "body": b""})


def _places(scope: Scope) -> Places:
    return scope["app"].state.places
