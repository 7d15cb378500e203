"""Fixtures for commands that are run as a user does."""

from pathlib import Path

import pytest

from rowcall.store.db import Database

from .workspace import Workspace, make_workspace


@pytest.fixture
def workspace(database: Database, tmp_path: Path) -> Workspace:
    """A folder with importers, and a database with their table."""
    return make_workspace(tmp_path, database)
