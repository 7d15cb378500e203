"""Where chance comes from."""

import os
import random


def seed() -> int:
    """A new seed, or the one of ROWCALL_FAULT_SEED. A test that fails shows it."""
    chosen = int(os.environ.get("ROWCALL_FAULT_SEED") or random.randrange(1_000_000))
    print(f"ROWCALL_FAULT_SEED={chosen}")  # noqa: T201 (pytest shows it with a failure)
    return chosen
