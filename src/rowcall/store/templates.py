"""Templates: whole mappings of columns, for files that some system writes in one of its variants."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec
from psycopg import Connection
from psycopg.rows import dict_row
from psycopg.types.json import Jsonb

from rowcall.decoding import converted
from rowcall.errors import Final
from rowcall.model import Code
from rowcall.store.jobs import TemplateKey, new_id, without_blanks
from rowcall.store.queries import query


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateColumn:
    """A column as the file had it that the template was made of."""

    position: int
    header: str
    target_field: str | None
    """None: it is left out."""
    place: int = 0
    separator: str = " "
    date_order: Literal["dmy", "mdy", "ymd"] | None = None
    decimal_mark: Literal[".", ","] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """A mapping that is used again."""

    id: UUID
    source_system: str
    importer: str
    variant: str
    columns: list[TemplateColumn]
    constants: dict[str, str] = field(default_factory=dict[str, str])
    saved_by: str
    saved_at: datetime

    @property
    def name(self) -> str:
        """As it is written on the command line."""
        return f"{self.source_system}/{self.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTemplate:
    """What is to be saved."""

    key: TemplateKey
    importer: str
    columns: list[TemplateColumn]
    constants: dict[str, str]


def save_template(connection: Connection[Any], organisation: UUID, new: NewTemplate, who: str) -> Template:
    """Keep a template; one of the same source system, importer and variant is replaced."""
    given = {
        "id": new_id(),
        "organisation": organisation,
        "source": new.key.source_system,
        "importer": new.importer,
        "variant": new.key.variant,
        "columns": Jsonb(msgspec.to_builtins(new.columns)),
        "constants": Jsonb(new.constants),
        "by": who,
    }
    (row,) = connection.cursor(row_factory=dict_row).execute(query("save_template"), given).fetchall()
    return _template(row)


def templates_of(
    connection: Connection[Any],
    organisation: UUID,
    *,
    source_system: str | None = None,
    importer: str | None = None,
    variant: str | None = None,
    template: UUID | None = None,
) -> list[Template]:
    """The templates of an organisation; only those that fit what is said."""
    given = {
        "organisation": organisation,
        "source": source_system and without_blanks(source_system),
        "importer": importer,
        "variant": variant and without_blanks(variant),
        "id": template,
    }
    return [_template(row) for row in connection.cursor(row_factory=dict_row).execute(query("templates"), given)]


def find_template(connection: Connection[Any], organisation: UUID, importer: str, key: TemplateKey) -> Template:
    """The template of this name for an importer."""
    found = templates_of(
        connection, organisation, source_system=key.source_system, importer=importer, variant=key.variant
    )
    if found:
        return found[0]
    known = ", ".join(other.name for other in templates_of(connection, organisation, importer=importer))
    told = f"There is no template {key.source_system}/{key.variant} for {importer}."
    raise Final(Code.TEMPLATE_NOT_FOUND, told, hint=f"There are: {known}." if known else "There is none yet.")


def get_template(connection: Connection[Any], organisation: UUID, template: UUID) -> Template:
    """A template by its id."""
    found = templates_of(connection, organisation, template=template)
    if not found:
        raise Final(Code.TEMPLATE_NOT_FOUND, f"There is no template {str(template)!r}.")
    return found[0]


def delete_template(connection: Connection[Any], organisation: UUID, template: UUID) -> None:
    """Take a template away."""
    connection.execute(query("delete_template"), {"organisation": organisation, "id": template})


def _template(row: dict[str, Any]) -> Template:
    columns: Any = converted(row["columns"], list[TemplateColumn])
    return Template(**{**row, "columns": columns})
