"""Where commands ask about jobs: at a server, or at the database itself."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Protocol
from uuid import UUID

import typer

from rowcall.client.answers import (
    Edited,
    Fingerprint,
    Importer,
    ImporterSummary,
    Item,
    Job,
    Merged,
    Preview,
    Receipt,
    Replaced,
    Replacement,
    Reprocessed,
    UndoPreview,
    UndoReceipt,
    View,
)
from rowcall.client.answers.columns import (
    ColumnAnswers,
    ColumnDecision,
    ColumnMappings,
    ColumnWarnings,
    TargetField,
    Template,
)
from rowcall.client.answers.values import (
    Candidates,
    RevokedDecision,
    ValueDecision,
    Values,
    ValueSaid,
    ValuesUpdated,
)
from rowcall.config import settings_from
from rowcall.errors import Final
from rowcall.model import Code

if TYPE_CHECKING:  # what isn't asked needn't be loaded
    from rowcall.client import Client

Server = Annotated[
    str | None,
    typer.Option(
        "--server",
        metavar="URL",
        help="Ask the service at this address, with the key in ROWCALL_KEY; else ROWCALL_SERVER.",
    ),
]


class ColumnDesk(Protocol):
    """What can be asked of columns."""

    def column_mappings(self, job: str) -> ColumnMappings: ...
    def change_columns(self, job: str, said: ColumnAnswers) -> ColumnMappings: ...
    def confirm_columns(self, job: str) -> Job: ...
    def reopen_columns(self, job: str) -> Job: ...
    def column_warnings(self, job: str) -> ColumnWarnings: ...
    def target_fields(self, job: str) -> list[TargetField]: ...
    def apply_template(self, job: str, source_system: str, variant: str) -> ColumnMappings: ...
    def templates(self, *, source_system: str | None = None, importer: str | None = None) -> list[Template]: ...
    def save_template(self, job: str, source_system: str, variant: str) -> Template: ...
    def delete_template(self, template: UUID) -> None: ...
    def column_decisions(self, *, importer: str | None = None) -> list[ColumnDecision]: ...
    def revoke_column_decision(self, decision: UUID) -> None: ...


class ValueDesk(Protocol):
    """What can be asked of values."""

    def values(
        self,
        job: str,
        *,
        field: str | None = None,
        status: str | None = None,
        text: str | None = None,
        after: str | None = None,
        most: int = 50,
    ) -> Values: ...
    def candidates(
        self,
        job: str,
        field: str,
        text: str = "",
        *,
        scope: str | None = None,
        after: str | None = None,
        most: int = 20,
    ) -> Candidates: ...
    def change_values(self, job: str, said: Sequence[ValueSaid]) -> ValuesUpdated: ...
    def confirm_values(self, job: str) -> Job: ...
    def value_decisions(
        self, *, importer: str | None = None, field: str | None = None, most: int | None = None
    ) -> Iterator[ValueDecision]: ...
    def revoke_value_decision(self, decision: UUID, *, reprocess: bool = False) -> RevokedDecision: ...


class Desk(ColumnDesk, ValueDesk, Protocol):
    """What can be asked, here as there: `rowcall.Client` has it, and `Local`."""

    def jobs(
        self, *, state: str | None, importer: str | None, scope: str | None = None, most: int | None
    ) -> Iterator[Job]: ...
    def items(self, job: str, view: View | None = None, *, most: int | None = None) -> Iterator[Item]: ...
    def preview(self, job: str) -> Preview: ...
    def submit(self, job: str, plan: str | None = None) -> Job: ...
    def receipt(self, job: str) -> Receipt: ...
    def fingerprint(self, job: str) -> Fingerprint: ...
    def acknowledge(self, job: str) -> Job: ...
    def item(self, job: str, row: int) -> Item: ...
    def edit(self, job: str, row: int, cells: dict[str, str | None], *, revision: int = 0) -> Edited: ...
    def undo_edits(self, job: str, row: int, *, revision: int) -> Edited: ...
    def replace(self, job: str, what: Replacement, *, token: str | None = None) -> Replaced: ...
    def rejects(self, job: str, target: Path | BinaryIO) -> int: ...
    def merge(self, job: str, file: Path) -> Merged: ...
    def pause(self, job: str) -> Job: ...
    def cancel(self, job: str) -> Job: ...
    def reprocess(self, job: str, view: View | None = None, *, rows: list[int] | None = None) -> Reprocessed: ...
    def preview_undo(
        self, job: str, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> UndoPreview: ...
    def undo(
        self, job: str, view: View | None = None, *, rows: list[int] | None = None, partial: bool = False
    ) -> Job: ...
    def wait(self, job: str) -> Job: ...
    def undo_receipt(self, job: str) -> UndoReceipt: ...
    def importers(self) -> list[ImporterSummary]: ...
    def importer(self, name: str) -> Importer: ...
    def template(self, name: str, target: Path | BinaryIO) -> object: ...


def desk(server: str | None) -> AbstractContextManager[Desk]:
    """The server if one is named, in the command or the settings; else the database."""
    if client := client_of(server):
        return client
    from rowcall.cli.local import Local

    return Local(settings_from())


def client_of(server: str | None) -> "Client | None":
    """The server that is named, if any."""
    settings = settings_from()
    address = server or settings.server
    if address is None:
        return None
    from rowcall.client import Client

    return Client(address, settings.key)


def only_here(client: "Client", **options: object) -> None:
    """Refuse options that a server decides for itself."""
    for name, value in options.items():
        if value:
            option = f"--{name.replace('_', '-')}"
            told = f"{option} is not for a server: {client.url} decides that itself."
            raise Final(Code.BAD_OPTION, told, hint=f"Leave out {option}, or the server.")
