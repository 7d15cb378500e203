"""Hosts on this machine: each has a network of its own, and one switch joins them, which can cut one off.

A network namespace belongs to a thread of ours and to the processes that it starts. It ends with them, so that nothing
is left behind however a test ends.
"""

import ctypes
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

import pytest

_CLONE_NEWNET = 0x4000_0000
_SWITCH = "switch"
T = TypeVar("T")


@dataclass(frozen=True)
class Host:
    """A place of its own on the network; nothing of it can be reached but over the switch."""

    name: str
    address: str
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def do(self, what: Callable[[], T]) -> T:
        """Do something there; processes that it starts stay there."""
        return self._thread.submit(what).result()

    def enter(self, stack: ExitStack, what: AbstractContextManager[T]) -> T:
        """Begin something there that ends with the stack."""
        return self.do(lambda: stack.enter_context(what))

    def ip(self, *words: str) -> None:
        """Change its network."""
        done = self.do(lambda: subprocess.run(["ip", *words], capture_output=True, text=True, check=False))
        assert done.returncode == 0, f"ip {' '.join(words)}: {done.stderr}"

    def close(self) -> None:
        self._thread.shutdown()


@dataclass(frozen=True)
class Network:
    """Hosts by name. The first has the switch, and so is never cut off."""

    hosts: dict[str, Host]
    first: Host

    def cut(self, host: Host) -> None:
        """Let all that comes from a host or goes to it disappear, without a word to anybody."""
        self.first.ip("link", "set", host.name, "nomaster")

    def heal(self, host: Host) -> None:
        self.first.ip("link", "set", host.name, "master", _SWITCH)


@contextmanager
def network(*names: str) -> Generator[Network]:
    """Hosts of these names, for as long as this lasts."""
    _require_means()
    with ExitStack() as stack:
        hosts = [Host(name, f"10.0.0.{number}") for number, name in enumerate(names, 1)]
        for host in hosts:
            stack.callback(host.close)
            host.do(_leave_network)
            host.ip("link", "set", "lo", "up")
        first, *others = hosts
        first.ip("link", "add", _SWITCH, "type", "bridge")
        first.ip("address", "add", f"{first.address}/24", "dev", _SWITCH)
        first.ip("link", "set", _SWITCH, "up")
        for host in others:
            _plug_in(first, host)
        yield Network({host.name: host for host in hosts}, first)


def _plug_in(first: Host, host: Host) -> None:
    there = str(host.do(threading.get_native_id))
    first.ip("link", "add", host.name, "type", "veth", "peer", "name", "eth0", "netns", there)
    first.ip("link", "set", host.name, "master", _SWITCH, "up")
    host.ip("address", "add", f"{host.address}/24", "dev", "eth0")
    host.ip("link", "set", "eth0", "up")


def _require_means() -> None:
    """A plain user's machine need not have them. Root has: what is missing there is to be mended, not passed over."""
    if os.geteuid() != 0:
        pytest.skip("only root may make network namespaces")
    assert shutil.which("ip"), "`ip` is missing: apt-get install iproute2"


def _leave_network() -> None:
    """Put this thread on a network of its own, with nobody else."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNET):
        told = os.strerror(ctypes.get_errno())
        pytest.fail(f"No network namespace can be made here ({told}); in a container it takes --privileged.")
