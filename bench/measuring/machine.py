"""What the figures depend on."""

import os
import platform
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version


def machine(packages: Sequence[str], **others: str) -> dict[str, object]:
    """Processors and versions, as both results tell them."""
    found = {name: _version(name) for name in packages} | others
    return {"cpus": os.cpu_count(), "python": platform.python_version(), "versions": found}


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
