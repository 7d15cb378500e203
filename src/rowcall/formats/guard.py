"""Runs a reader of untrusted files in a child process with a memory limit.

Some parsers abort the whole process when a file makes them ask for too much memory; no `except` catches that.
So they run in a child: the parent gets a stream of messages and, when the child dies, a clear refusal.
"""

import importlib
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from typing import IO, cast

from rowcall.errors import FileRefused, RowcallError
from rowcall.formats.reading import MIB
from rowcall.model import Code

_LENGTH = struct.Struct("<Q")
_DONE = ("done", None)


def guarded(task: str, *args: object, memory: int, cpu_seconds: int = 3600) -> Iterator[object]:
    """Yield what `module:function(*args)` yields, run in a child that may use `memory` bytes of data.

    A RowcallError raised there is raised here; a child that dies is a READER_FAILED refusal.
    """
    command = [sys.executable, "-m", "rowcall.formats.guard", str(memory), str(cpu_seconds)]
    environment = {**os.environ, "POLARS_MAX_THREADS": "1", "OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "2"}
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed below; a pipe could fill up and block the child)
    child = subprocess.Popen(  # noqa: S603 (our own interpreter and module)
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, env=environment
    )
    stdin, stdout = cast("IO[bytes]", child.stdin), cast("IO[bytes]", child.stdout)
    try:
        stdin.write(pickle.dumps((task, args)))
        stdin.close()
        while True:
            kind, value = _receive(stdout) or ("died", None)
            if kind == "item":
                yield value
            elif kind == "error":
                raise cast("RowcallError", value)
            elif kind == "done":
                return
            else:
                status = child.wait()
                stderr.seek(0)
                raise _obituary(status, stderr.read(MIB).decode("utf-8", "replace"), memory)
    finally:
        child.kill()
        child.wait()
        for pipe in (stdin, stdout, stderr):
            pipe.close()


def _receive(pipe: IO[bytes]) -> tuple[str, object] | None:
    head = pipe.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    size = _LENGTH.unpack(head)[0]
    body = pipe.read(size)
    # the child is our own code under our own user: its pickles are as trusted as this process
    return cast("tuple[str, object]", pickle.loads(body)) if len(body) == size else None  # noqa: S301


def _obituary(status: int, stderr: str, memory: int) -> FileRefused:
    out_of_memory = "memory" in stderr.lower() or "MemoryError" in stderr or "bad_alloc" in stderr
    if out_of_memory or status in (-signal.SIGABRT, -signal.SIGKILL):
        return FileRefused(
            Code.READER_FAILED,
            f"Reading this file needs more than the {memory // 2**20} MB a reader may use.",
            hint="The file may be damaged or made to exhaust memory. Save it again as CSV, or split it.",
        )
    return FileRefused(
        Code.READER_FAILED,
        f"The reader of this file stopped unexpectedly (status {status}).",
        hint="The file is probably damaged: open it in its own program and save it again.",
    )


def _send(pipe: IO[bytes], message: tuple[str, object]) -> None:
    body = pickle.dumps(message, protocol=5)
    pipe.write(_LENGTH.pack(len(body)))
    pipe.write(body)
    pipe.flush()


def _child() -> None:
    memory, cpu_seconds = int(sys.argv[1]), int(sys.argv[2])
    # RLIMIT_DATA counts what is really writable; RLIMIT_AS would count address space that allocators only reserve
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever a library prints must not mix with the messages
    task, args = cast("tuple[str, tuple[object, ...]]", pickle.loads(sys.stdin.buffer.read()))  # noqa: S301
    module, _, name = task.partition(":")
    try:
        function = cast("Callable[..., Iterator[object]]", getattr(importlib.import_module(module), name))
        for item in function(*args):
            _send(out, ("item", item))
        _send(out, _DONE)
    except RowcallError as error:
        _send(out, ("error", error))


if __name__ == "__main__":
    _child()
