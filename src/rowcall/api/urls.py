"""A request that names a file by its URL. Whoever works on the job fetches it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
from fastapi import Request
from pydantic import Field, ValidationError
from python_multipart.multipart import parse_options_header

from rowcall.api.models.configs import ImportConfig
from rowcall.api.models.wire import Text, Wire
from rowcall.api.problems import unfit
from rowcall.api.uploads import Upload, require_plain
from rowcall.config import Settings
from rowcall.engine.fetch import admitted
from rowcall.errors import Final
from rowcall.model import Code

_LONGEST = 1 << 20


class UrlImport(Wire):
    """Where a file is, and what to do with it."""

    url: Text = Field(examples=["https://example.org/users.csv"])
    importer: Text = Field(examples=["users"])
    config: ImportConfig = ImportConfig()
    context: dict[Text, Text] = Field(default={}, examples=[{"registration": "R1"}])
    """What the file is about, as its importer demands."""


def names_url(request: Request) -> bool:
    """Whether the body is such a request. With `?importer=` it would be a file that happens to be JSON."""
    kind, _ = parse_options_header(request.headers.get("content-type", ""))
    return kind == b"application/json" and "importer" not in request.query_params


@asynccontextmanager
async def named(request: Request, settings: Settings) -> AsyncGenerator[Upload]:
    """What the request asks for; nothing has been fetched."""
    require_plain(request)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            raise Final(Code.BAD_REQUEST, "The request is longer than a megabyte.")
    try:
        asked = UrlImport.model_validate_json(bytes(body))
    except ValidationError as error:
        hint = "A JSON file itself is sent with `?importer=`."
        raise unfit(error, at="body", hint=hint) from None
    place = admitted(settings, asked.url)
    fields = {
        "importer": asked.importer,
        "config": asked.config.model_dump_json(by_alias=True),
        "context": msgspec.json.encode(asked.context).decode(),
    }
    yield Upload(None, place.name, fields, url=place.shown, url_with_secrets=asked.url)
