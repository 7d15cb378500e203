"""What `rowcall.Client` asks a server of values, asked of the database itself."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

import msgspec
from psycopg import Connection

from rowcall.client import answers
from rowcall.client.answers.values import (
    Candidates,
    RevokedDecision,
    ValueDecision,
    Values,
    ValueSaid,
    ValuesUpdated,
)
from rowcall.decoding import converted
from rowcall.engine.values import answering, documents
from rowcall.engine.values import revoke as revoking
from rowcall.engine.values.answering import ValueUpdate
from rowcall.engine.values.candidates import Sought
from rowcall.importer import Importer
from rowcall.importer.registry import load_registry
from rowcall.store import jobs, value_answers
from rowcall.store.jobs import LOCAL, Job, system_account
from rowcall.store.value_answers import WantedValues
from rowcall.store.value_decisions import WantedDecisions, page_of_decisions


class LocalValues:
    """The part of `Local` that is about values."""

    @cached_property
    def _connection(self) -> Connection[Any]:
        raise NotImplementedError

    def _moved(self, job: str, move: Callable[[Connection[Any], Job], Job]) -> answers.Job:
        raise NotImplementedError

    def values(
        self,
        job: str,
        *,
        field: str | None = None,
        status: str | None = None,
        text: str | None = None,
        after: str | None = None,
        most: int = 50,
    ) -> Values:
        """A page of the distinct values of a job, the most frequent first."""
        found = jobs.get_job(self._connection, job)
        wanted = WantedValues(field=field, status=status, text=text, most=most)
        told = documents.values_document(self._connection, found, _importer(found), wanted, after)
        return converted(told, Values)

    def _value_fields(self, job: Job) -> list[dict[str, Any]]:
        return documents.fields_document(_importer(job), value_answers.value_fields(self._connection, job.id))

    def candidates(
        self,
        job: str,
        field: str,
        text: str = "",
        *,
        scope: str | None = None,
        after: str | None = None,
        most: int = 20,
    ) -> Candidates:
        """Search for what values of a field can stand for, the best first."""
        importer = _importer(jobs.get_job(self._connection, job))
        sought = Sought(text=text, scope=scope, most=most)
        told = documents.candidates_document(self._connection, importer, field, sought, after)
        return converted(told, Candidates)

    def change_values(self, job: str, said: Sequence[ValueSaid]) -> ValuesUpdated:
        """Say what values stand for; all of it is taken, or nothing."""
        found = jobs.get_job(self._connection, job)
        importer, updates = _importer(found), [_update(each) for each in said]
        with self._connection.transaction():
            named = answering.targets_named(self._connection, found, updates)
            targets = answering.find_targets(self._connection, importer, named)
            count = answering.update(self._connection, found, importer, updates, targets, system_account())
        return converted({"updated": count, "fields": self._value_fields(found)}, ValuesUpdated)

    def confirm_values(self, job: str) -> answers.Job:
        """Let a job go on with what its values stand for."""
        return self._moved(job, answering.confirm)

    def value_decisions(
        self, *, importer: str | None = None, field: str | None = None, most: int | None = None
    ) -> Iterator[ValueDecision]:
        """What was decided of values and is remembered, the latest first."""
        after, left = None, most
        while left is None or left > 0:
            wanted = WantedDecisions(importer=importer, field=field, after=after, most=min(left or 1000, 1000))
            page = page_of_decisions(self._connection, LOCAL, wanted)
            yield from (converted(documents.decision_document(each), ValueDecision) for each in page)
            if len(page) < wanted.most:
                return
            after, left = (page[-1].decided_at, page[-1].id), left and left - len(page)

    def revoke_value_decision(self, decision: UUID, *, reprocess: bool = False) -> RevokedDecision:
        """Take back what was decided of a value; with `reprocess`, rows that were left out for it are tried again."""
        from rowcall.worker.queue import migrate_queue, nudge  # Procrastinate takes its time

        migrate_queue(self._connection)
        with self._connection.transaction():
            revoked, going = revoking.revoke(self._connection, LOCAL, decision, load_registry(), reprocess=reprocess)
            for job in going:
                if job.background:
                    nudge(self._connection, job.id)
        return converted(documents.revoked_document(revoked, [job.number for job in going]), RevokedDecision)


def _importer(job: Job) -> type[Importer]:
    return load_registry().importer(job.importer)


def _update(said: ValueSaid) -> ValueUpdate:
    told = msgspec.structs.asdict(said)
    return ValueUpdate(target=told.pop("target_id"), **told)
