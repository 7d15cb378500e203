"""Whether a person is asked about columns, and how that is said in a configuration."""

import json
from collections.abc import Sequence

from rowcall.importer import Importer
from rowcall.importer.matching import Ask
from rowcall.store.jobs import JobConfig
from rowcall.store.mappings import ColumnMapping


def asking(importer: type[Importer], config: JobConfig) -> Ask:
    """Whether a person is asked about the columns of a job."""
    return config.ask or importer.flow.columns


def is_asked(importer: type[Importer], config: JobConfig, columns: Sequence[ColumnMapping]) -> bool:
    """Whether what isn't sure is a question: a person is asked, or has decided about columns already."""
    return asking(importer, config) != "never" or any(column.decided_by for column in columns)


def in_config(name: str, value: object) -> str:
    """How something is said in the configuration of an import over HTTP."""
    return f"`config` {json.dumps({name: value}, ensure_ascii=False)}"
