"""An S3 server on this machine, in a process of its own."""

import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def s3_server(host: str = "127.0.0.1") -> Generator[str]:
    """Its address, for as long as this lasts. It forgets everything at its end."""
    with socket.create_server((host, 0)) as listener:
        port = listener.getsockname()[1]
    command = [Path(sys.executable).parent / "moto_server", "-H", host, "-p", str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            _await_port(host, port, process)
            yield f"http://{host}:{port}"
        finally:
            process.kill()


def _await_port(host: str, port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        else:
            return
