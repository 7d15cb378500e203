"""What every answer tells browsers: take it for what it is, run nothing of it, show it in no frame, keep no copy."""

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rowcall.api.problems import problem_of

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Headers:
    """Adds them to every answer that doesn't say otherwise itself; an error that nobody caught is answered here."""

    def __init__(self, app: ASGIApp, *, hsts: int | None) -> None:
        self._app = app
        self._headers = _HEADERS | ({"Strict-Transport-Security": f"max-age={hsts}; includeSubDomains"} if hsts else {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, with_headers)
        except Exception as error:
            if not begun:  # else Starlette would answer, from outside of all middleware
                answer = problem_of(error, scope)
                answer.headers["Connection"] = "close"  # the server does so when it hears of the error
                await answer(scope, receive, with_headers)
            raise
