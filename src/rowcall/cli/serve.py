"""`rowcall serve`: the HTTP service."""

import errno
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import typer

from rowcall.api.app import create_app
from rowcall.api.guards import Server, server_config
from rowcall.api.service import Service
from rowcall.cli.screen import screen
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.importer.registry import load_registry
from rowcall.model import Code
from rowcall.store.accounts import any_key
from rowcall.store.db import open_database
from rowcall.store.files.filestore import file_store
from rowcall.store.files.marks import bind
from rowcall.store.packs import migrate_pack
from rowcall.store.tenancy import open_to_api
from rowcall.telemetry.logs import logger, start_logs
from rowcall.telemetry.tracing import start_tracing
from rowcall.worker.queue import migrate_queue

_GRACE = 10
"""Seconds that requests under way have to end when the service is told to stop."""
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_HINTS = """There are no keys yet: everybody on this machine may ask for everything. Try, in another terminal:

  curl -F file=@samples/content/users_messy.csv -F importer=users {url}/v1/imports
  curl '{url}/v1/imports?pageSize=1'
  curl '{url}/v1/pending?statuses=failed&userId=all'
  curl '{url}/v1/exports?resource=users&format=csv'
  curl {url}/v1/importers
  curl {url}/openapi.json

Ctrl-C ends it; jobs under way go on when it is started again.
"""


def serve(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 for any that is free.")] = 8765,
    workers: Annotated[int, typer.Option(min=0, help="Worker processes beside it; 0 if they run elsewhere.")] = 1,
    metrics_port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help="The first worker serves its /metrics here, the next one on the next port."
        ),
    ] = None,
) -> None:
    """Serve the API, with workers beside it. Logs go to standard error, a JSON line each."""
    settings, registry = settings_from(), load_registry()
    start_logs(settings.log_level)
    signal.signal(signal.SIGTERM, _leave)
    tracing = start_tracing("rowcall")
    with _listening(host, port) as listener, open_database(settings) as database:
        with database.connect("migrate") as connection:
            is_open = not any_key(connection)
            if is_open and host not in _LOOPBACK:
                raise _needs_keys(host)
            migrate_queue(connection)
            for pack in registry.packs:
                migrate_pack(connection, pack)
            open_to_api(connection)
            bind(connection, file_store(settings))
        app = create_app(Service(settings, registry, database.pool("serve", settings.pool_size)), tracing=tracing)
        server = Server(server_config(app, settings, grace=_GRACE))
        url = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        screen().print(f"Rowcall serves {url}")
        if is_open:
            screen().print(_HINTS.format(url=url), soft_wrap=True, markup=False)
        logger(__name__).info("service started", pid=os.getpid(), port=listener.getsockname()[1], workers=workers)
        with _beside(workers, metrics_port):
            server.run(sockets=[listener])
    if tracing:
        tracing.stop()


def _leave(*_: object) -> None:
    """Uvicorn raises its signal again when it has ended; by default that would end us before the workers are."""
    raise SystemExit


def _needs_keys(host: str) -> Final:
    """Whoever can be reached from elsewhere asks for keys, so there have to be some."""
    told = f"Without keys, Rowcall serves this machine only; {host} would let others in."
    hint = "Make a key first: `rowcall keys create --account you@example.org --role admin`. Or leave --host out."
    return Final(Code.BAD_OPTION, told, hint=hint)


@contextmanager
def _listening(host: str, port: int) -> Generator[socket.socket]:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Of the protocol by name: asyncio sends small answers at once, instead of 40 ms later, on such sockets only.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    with listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
            listener.listen()  # whoever reads the address and comes at once waits instead of being turned away
        except OSError as error:
            raise _not_listened_on(host, port, error) from error
        yield listener


def _not_listened_on(host: str, port: int, error: OSError) -> Final:
    if isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
        hint = "Give one of its own, such as 127.0.0.1, or 0.0.0.0 for all of them."
        return Final(Code.BAD_OPTION, f"--host is {host!r}, which is no address of this machine.", hint=hint)
    told = f"{host}:{port} can't be listened on: {os.strerror(error.errno or 0)}."
    if error.errno == errno.EACCES:
        return Final(Code.BAD_OPTION, told, hint="Ports below 1024 need special rights: choose another with --port.")
    return Final(Code.PORT_TAKEN, told, hint="Stop what is there, or choose another with --port.")


def _keep(
    processes: list[subprocess.Popen[bytes]], start: list[Callable[[], subprocess.Popen[bytes]]], over: threading.Event
) -> None:
    """Start another worker for each that ends."""
    while not over.wait(1):
        for number, process in enumerate(processes):
            if process.poll() is not None:
                logger(__name__).warning("a worker ended, another is started", status=process.returncode)
                processes[number] = start[number]()


@contextmanager
def _beside(count: int, metrics_port: int | None) -> Generator[None]:
    """Worker processes for as long as the service runs."""
    command = [sys.executable, "-c", "from rowcall.cli import main; main()", "worker", "--beside"]
    commands = [[*command, *(["--metrics-port", str(metrics_port + n)] if metrics_port else [])] for n in range(count)]
    # the pipe closes whenever we are gone, killed or not
    start = [partial(subprocess.Popen, each, stdin=subprocess.PIPE, start_new_session=True) for each in commands]
    processes = [begin() for begin in start]
    over = threading.Event()
    keeper = threading.Thread(target=_keep, args=(processes, start, over), name="keeper")
    keeper.start()
    try:
        yield
    finally:
        over.set()
        keeper.join()
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            process.wait()
            if process.stdin:
                process.stdin.close()
