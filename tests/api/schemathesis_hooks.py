"""What Schemathesis has to be told: how pieces of uploads are sent, and that codes of problems are documented."""

from typing import Any

import schemathesis

_PROBLEM = "application/problem+json"


@schemathesis.serializer("application/offset+octet-stream")
def piece(ctx: schemathesis.SerializationContext, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


@schemathesis.check
def code_is_documented(ctx: Any, response: schemathesis.Response, case: Any) -> None:
    """The code of a problem is among the examples of its status."""
    told = case.operation.responses.get(str(response.status_code))
    if told is None or not response.content or response.headers.get("content-type") != [_PROBLEM]:
        return
    code = response.json()["code"]
    known = told.definition["content"][_PROBLEM]["examples"]
    assert code in known, f"{response.status_code} comes with an undocumented code: {code}"
