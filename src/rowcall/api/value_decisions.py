"""What an organisation decided of values, over HTTP: to be seen, and taken back."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from rowcall.api.audit import audit
from rowcall.api.models.values import DecisionPage, RevokedAnswer
from rowcall.api.models.wire import Text
from rowcall.api.openapi import refusals
from rowcall.api.service import TheCaller, TheService
from rowcall.engine.values.documents import decision_document, revoked_document
from rowcall.engine.values.revoke import revoke
from rowcall.model import Code
from rowcall.store.cursors import decoded, encoded
from rowcall.store.value_decisions import WantedDecisions, page_of_decisions
from rowcall.worker.queue import nudge

router = APIRouter(prefix="/v1/value-decisions", tags=["values"])


@router.get("", responses=refusals(Code.BAD_CURSOR))
def list_value_decisions(
    at: TheService,
    caller: TheCaller,
    importer: Text | None = None,
    field: Annotated[Text | None, Query(description="Only of this field.")] = None,
    text: Annotated[Text | None, Query(description="Only of values with this in them.")] = None,
    after: Annotated[Text | None, Query(description="The `next` of the page before.")] = None,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=1000)] = 50,
) -> DecisionPage:
    """What was decided of values and is used for the next file, the latest first."""
    about = f"value decisions {importer} {field} {text}"
    place = decoded(about, after, tuple[datetime, UUID]) if after is not None else None
    wanted = WantedDecisions(importer=importer, field=field, text=text, after=place, most=page_size + 1)
    with at.connection(caller) as connection:
        found = page_of_decisions(connection, caller.organisation, wanted)
    last = found[page_size - 1] if len(found) > page_size else None
    return DecisionPage.model_validate(
        {
            "items": [decision_document(each) for each in found[:page_size]],
            "next": encoded(about, (last.decided_at, last.id)) if last else None,
        }
    )


@router.delete("/{decision_id}", responses=refusals(Code.DECISION_NOT_FOUND))
def revoke_value_decision(
    decision_id: UUID,
    at: TheService,
    caller: TheCaller,
    reprocess: Annotated[
        bool,
        Query(
            description="Try rows again that were left out for it, when somebody has said what it stands for; and have "
            "jobs that wait and have written nothing ask anew."
        ),
    ] = False,
) -> RevokedAnswer:
    """Take back what was decided of a value. What was written stays; the answer tells which jobs used it."""
    with at.connection(caller) as connection:
        revoked, going = revoke(connection, caller.organisation, decision_id, at.registry, reprocess=reprocess)
        for job in going:
            nudge(connection, job.id)
        details = {"importer": revoked.decision.importer, "field": revoked.decision.field}
        audit(connection, caller, "value-decision.revoke", decision_id, details)
    return RevokedAnswer.model_validate(revoked_document(revoked, [job.number for job in going]))
