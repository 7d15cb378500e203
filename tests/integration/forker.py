"""A process that has loaded `rowcall`, and forks for each command: loading takes most of the time of a small one.

It gets arguments, environment and the three standard files of a command over the socket whose number it was given, and
answers with exit code and peak memory in KB.
"""

import atexit
import gc
import json
import os
import socket
import sys
import threading
import traceback
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import rowcall.cli

_APART = ("serve", "worker")
_LATER = ("typer._adapters", "rich._emoji_codes", "rowcall.client.client", "rowcall.engine.run")
"""What commands load when they need it. Not importers: these have Polars start threads, which don't outlive a fork."""


def serve(asked: socket.socket) -> None:
    commands = (module.name for module in iter_modules(rowcall.cli.__path__) if module.name not in _APART)
    for name in [*(f"rowcall.cli.{name}" for name in commands), *_LATER]:
        import_module(name)
    gc.freeze()  # what is loaded stays: commands need not look for garbage in it
    while True:
        message, files, _, _ = socket.recv_fds(asked, 1_000_000, 3)
        if not message:
            return
        child = os.fork()
        if child == 0:
            _run(json.loads(message), files)
        for file in files:
            os.close(file)
        _, status, used = os.wait4(child, 0)
        asked.send(json.dumps([os.waitstatus_to_exitcode(status), used.ru_maxrss]).encode())


def _run(message: Any, files: list[int]) -> None:
    from rowcall.cli.app import main

    for standard, file in enumerate(files):
        os.dup2(file, standard)
        os.close(file)
    sys.argv[:] = ["rowcall", *message["arguments"]]
    os.environ.clear()
    os.environ.update(message["environment"])
    os.chdir(message["folder"])
    status = 1
    try:
        main()
        status = 0
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:
        traceback.print_exc()
    _leave(status)


def _leave(status: int) -> None:
    """End as an interpreter does, but for taking apart what the other process loaded: that takes longest of all."""
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    for file in (sys.stdout, sys.stderr):
        with suppress(OSError):
            file.flush()
    os._exit(status)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
