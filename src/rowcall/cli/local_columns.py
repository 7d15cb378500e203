"""What `rowcall.Client` asks a server of columns, asked of the database itself."""

from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from psycopg import Connection

from rowcall.client import answers
from rowcall.client.answers.columns import (
    ColumnAnswers,
    ColumnDecision,
    ColumnMappings,
    ColumnWarnings,
    TargetField,
    Template,
)
from rowcall.decoding import converted
from rowcall.engine.columns import answering, documents
from rowcall.engine.columns.reopen import reopen_columns
from rowcall.engine.columns.templates import apply_template, save_from
from rowcall.engine.columns.warnings import warnings_of
from rowcall.engine.work import checked_target, limits_of, needed_by
from rowcall.importer import Importer
from rowcall.importer.registry import load_registry
from rowcall.store import decisions, jobs, templates
from rowcall.store.jobs import LOCAL, Job, TemplateKey, system_account
from rowcall.store.mappings import columns_of

_T = TypeVar("_T")


class LocalColumns:
    """The part of `Local` that is about columns."""

    @cached_property
    def _connection(self) -> Connection[Any]:
        raise NotImplementedError

    def _moved(self, job: str, move: Callable[[Connection[Any], Job], Job]) -> answers.Job:
        raise NotImplementedError

    def column_mappings(self, job: str) -> ColumnMappings:
        """The columns of a job, and what is still open."""
        found = jobs.get_job(self._connection, job)
        importer = _importer(found)
        needed = needed_by(self._connection, importer, found.config.mode)
        columns, counts = columns_of(self._connection, found.id), jobs.counts_of(self._connection, found)
        told = documents.columns_document(found, counts, importer, columns, needed)
        return converted(told, ColumnMappings)

    def change_columns(self, job: str, said: ColumnAnswers) -> ColumnMappings:
        """Say which column is which field."""
        answered = answering.ColumnAnswers(
            updates=[answering.ColumnUpdate(**msgspec.structs.asdict(each)) for each in said.updates],
            joins=[
                answering.Join(
                    target_field=each.target_field, positions=tuple(each.positions), separator=each.separator
                )
                for each in said.joins
            ],
            constants=said.constants,
        )
        with self._connection.transaction():
            found = jobs.get_job(self._connection, job)
            answering.update(self._connection, found, _importer(found), answered, system_account())
        return self.column_mappings(job)

    def confirm_columns(self, job: str) -> answers.Job:
        """Let a job go on with its columns as they are."""

        def confirm(connection: Connection[Any], found: Job) -> Job:
            importer = _importer(found)
            needed = needed_by(connection, importer, found.config.mode)
            return answering.confirm(connection, found, importer, needed, system_account())

        return self._moved(job, confirm)

    def reopen_columns(self, job: str) -> answers.Job:
        """Go back to the columns of a job that has written nothing."""
        return self._moved(job, lambda connection, found: reopen_columns(connection, found, _importer(found)))

    def column_warnings(self, job: str) -> ColumnWarnings:
        """What should be known before the columns of a job are confirmed."""
        found = jobs.get_job(self._connection, job)
        importer = _importer(found)
        limits = limits_of(importer, checked_target(self._connection, importer), found.config.mode)
        told = documents.warnings_document(warnings_of(self._connection, found, importer, limits))
        return converted(told, ColumnWarnings)

    def target_fields(self, job: str) -> list[TargetField]:
        """The fields that columns of a job can go to."""
        found = jobs.get_job(self._connection, job)
        importer = _importer(found)
        limits = limits_of(importer, checked_target(self._connection, importer), found.config.mode)
        mapped = columns_of(self._connection, found.id)
        return converted(documents.target_fields_document(found, importer, mapped, limits), list[TargetField])

    # -------------------------------------------------------------------------------------- templates and decisions

    def apply_template(self, job: str, source_system: str, variant: str) -> ColumnMappings:
        """Map the columns of a job that waits as a template has them."""
        with self._connection.transaction():
            found = jobs.get_job(self._connection, job)
            key = TemplateKey(source_system, variant)
            apply_template(self._connection, found, _importer(found), key, system_account())
        return self.column_mappings(job)

    def templates(self, *, source_system: str | None = None, importer: str | None = None) -> list[Template]:
        """The templates that there are."""
        found = templates.templates_of(self._connection, LOCAL, source_system=source_system, importer=importer)
        return [converted(documents.template_document(each), Template) for each in found]

    def save_template(self, job: str, source_system: str, variant: str) -> Template:
        """Save the settled columns of a job as a template."""
        with self._connection.transaction():
            found = jobs.get_job(self._connection, job)
            saved = save_from(self._connection, found, TemplateKey(source_system, variant), system_account())
        return converted(documents.template_document(saved), Template)

    def delete_template(self, template: Template | UUID) -> None:
        """Take a template away."""
        template_id = template.id if isinstance(template, Template) else template
        with self._connection.transaction():
            found = templates.get_template(self._connection, LOCAL, template_id)
            templates.delete_template(self._connection, LOCAL, found.id)

    def column_decisions(self, *, importer: str | None = None) -> list[ColumnDecision]:
        """What was decided of columns."""
        found = decisions.decisions_of(self._connection, LOCAL, importer=importer)
        return [converted(documents.decision_document(each), ColumnDecision) for each in found]

    def revoke_column_decision(self, decision: ColumnDecision | UUID) -> None:
        """Have a decision proposed no more."""
        decision_id = decision.id if isinstance(decision, ColumnDecision) else decision
        decisions.forget(self._connection, LOCAL, decision_id)


def _importer(job: Job) -> type[Importer]:
    return load_registry().importer(job.importer)
