"""A process that has loaded `rowcall`, and forks for each command: loading takes most of the time of a small one.

It gets arguments, environment and the three standard files of a command over the socket whose number it was given, and
answers with exit code and peak memory in KB.
"""

import json
import os
import socket
import sys
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
    main()
    sys.exit()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
