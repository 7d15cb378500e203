"""Whether the service lives, and whether it can take work."""

import asyncio
import time
from collections.abc import Awaitable
from typing import Any, Literal

import psycopg
from fastapi import APIRouter, Request, Response
from psycopg import Connection
from pydantic import Field

from rowcall.api.models.wire import Wire
from rowcall.api.probes import Probes
from rowcall.api.service import Service, TheService
from rowcall.config import Settings
from rowcall.errors import RowcallError
from rowcall.model import Code
from rowcall.store.files.filestore import file_store
from rowcall.store.migrate import pending
from rowcall.store.operations import workers_seen
from rowcall.store.packs import pending_of_pack
from rowcall.worker.queue import pending_of_queue

router = APIRouter(prefix="/health", tags=["operations"])
_FRESH = 1.0


class Check(Wire):
    """What was found of one thing that the service stands on."""

    ok: bool
    required: bool = True
    """Whether the service can't take work without it."""
    ms: float = Field(description="How long the look took.")
    detail: str = ""


class Health(Wire):
    """`ready`: all is well; `degraded`: work is taken, but nobody does it; `unready`: no work can be taken."""

    status: Literal["ready", "degraded", "unready"]
    checks: dict[str, Check]


class Alive(Wire):
    """The process answers."""

    status: Literal["alive"] = "alive"


@router.get("/live")
async def read_liveness() -> Alive:
    """Whether the process answers. It asks nobody else."""
    return Alive()


@router.get("/ready", responses={503: {"model": Health, "description": "No work can be taken."}})
async def read_readiness(request: Request, response: Response, at: TheService) -> Health:
    """Whether files can be taken: database, migrations and file store, each looked at for two seconds at most.

    No worker seen within a minute is told as `degraded`, with 200: files are taken all the same, and worked on when one
    comes.
    """
    probes: Probes = request.app.state.probes
    database, files = await asyncio.gather(
        _timed(probes.database.ask("ready", lambda connection: _looked(connection, at), fresh=_FRESH)),
        _timed(probes.files.look("files", lambda: _writable(at.settings), fresh=_FRESH)),
    )
    checks = {**_of_database(*database), "files": _of_files(*files)}
    if not all(check.ok for check in checks.values() if check.required):
        response.status_code = 503
        return Health(status="unready", checks=checks)
    return Health(status="ready" if all(check.ok for check in checks.values()) else "degraded", checks=checks)


async def _timed(look: Awaitable[Any]) -> tuple[Any, float]:
    """What a look found or raised, and its milliseconds."""
    began = time.perf_counter()
    try:
        found: Any = await look
    except (psycopg.Error, OSError, TimeoutError, RowcallError) as error:
        found = error
    return found, round(1000 * (time.perf_counter() - began), 1)


def _looked(connection: Connection[Any], at: Service) -> tuple[list[str], int]:
    """The migrations that are pending, and how many workers were seen."""
    packs = [id_ for pack in at.registry.packs for id_ in pending_of_pack(connection, pack)]
    missing = [*pending(connection), *pending_of_queue(connection), *packs]
    return missing, workers_seen(connection)[0]


def _writable(settings: Settings) -> None:
    store = file_store(settings)
    store.check()
    store.require_own()


def _of_database(found: Any, ms: float) -> dict[str, Check]:
    """The checks that ask the database. Why it doesn't answer may name hosts and accounts: the logs have that."""
    if isinstance(found, BaseException):
        said = "no answer in time" if isinstance(found, TimeoutError) else "no connection"
        gone = Check(ok=False, ms=ms, detail=said)
        unknown = "the database was not asked"
        return {
            "database": gone,
            "migrations": Check(ok=False, ms=0, detail=unknown),
            "workers": Check(ok=False, required=False, ms=0, detail=unknown),
        }
    missing, workers = found
    told = f"{len(missing)} pending: {', '.join(missing[:5])}" if missing else ""
    seen = f"{workers} seen within a minute" if workers else "none seen within a minute"
    return {
        "database": Check(ok=True, ms=ms),
        "migrations": Check(ok=not missing, ms=ms, detail=told),
        "workers": Check(ok=workers > 0, required=False, ms=ms, detail=seen),
    }


def _of_files(found: Any, ms: float) -> Check:
    if isinstance(found, TimeoutError):
        return Check(ok=False, ms=ms, detail="no answer in time")
    if isinstance(found, RowcallError) and found.code == Code.FOREIGN_FILE_STORE:
        return Check(ok=False, ms=ms, detail="not the one that the database belongs to")
    return Check(ok=found is None, ms=ms, detail="can't be written to" if found else "")
