"""The part of the client that is about values: settling them, and remembered decisions."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from rowcall.client.answers import Job
from rowcall.client.answers.values import (
    Candidates,
    RevokedDecision,
    ValueDecision,
    Values,
    ValueSaid,
    ValuesUpdated,
)
from rowcall.client.calls.calls import AnyJob, Calls, given

_DECISIONS = "/v1/value-decisions"


class ValueCalls(Calls):
    """What `Client` can be asked of values."""

    def values(
        self,
        job: AnyJob,
        *,
        field: str | None = None,
        status: str | None = None,
        text: str | None = None,
        after: str | None = None,
        most: int = 50,
    ) -> Values:
        """A page of the distinct values of a job, the most frequent first; `after` is the `next` of the one before."""
        asked = {"field": field, "status": status, "text": text, "after": after, "pageSize": str(most)}
        return self._asking.ask(Values, "GET", f"{self._path(job)}/cell-mappings", params=given(asked))

    def candidates(
        self,
        job: AnyJob,
        field: str,
        text: str = "",
        *,
        scope: str | None = None,
        after: str | None = None,
        most: int = 20,
    ) -> Candidates:
        """Search for what values of a field can stand for, the best first; `after` is the `next` of the page before."""
        asked = {"targetField": field, "q": text, "pageSize": str(most), "scope": scope or None, "after": after}
        place = f"{self._path(job)}/cell-mappings/candidates"
        return self._asking.ask(Candidates, "GET", place, params=given(asked))

    def change_values(self, job: AnyJob, said: Sequence[ValueSaid]) -> ValuesUpdated:
        """Say what values stand for; all of it is taken, or nothing."""
        return self._tell(ValuesUpdated, "PUT", f"{self._path(job)}/cell-mappings", {"updates": list(said)}, safe=True)

    def confirm_values(self, job: AnyJob) -> Job:
        """Let a job go on with what its values stand for."""
        return self._asking.ask(Job, "POST", f"{self._path(job)}/cell-mappings/confirm", safe=False)

    def value_decisions(
        self, *, importer: str | None = None, field: str | None = None, most: int | None = None
    ) -> Iterator[ValueDecision]:
        """What was decided of values and is remembered, the latest first."""
        return self._pages(ValueDecision, _DECISIONS, {"importer": importer, "field": field}, most)

    def revoke_value_decision(self, decision: UUID, *, reprocess: bool = False) -> RevokedDecision:
        """Take back what was decided of a value; with `reprocess`, rows that were left out for it are tried again."""
        params = {"reprocess": str(reprocess).lower()}
        return self._asking.ask(RevokedDecision, "DELETE", f"{_DECISIONS}/{decision}", safe=False, params=params)
