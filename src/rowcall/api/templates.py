"""Templates of columns and remembered decisions over HTTP. Both are the organisation's: everybody in it uses them."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Body, Query, Response

from rowcall.api.audit import audit
from rowcall.api.models.columns import (
    ColumnDecisionAnswer,
    ColumnDecisionList,
    SaveTemplateRequest,
    TemplateAnswer,
    TemplateList,
)
from rowcall.api.models.wire import Text
from rowcall.api.openapi import headers, refusals
from rowcall.api.service import TheCaller, TheService
from rowcall.engine.columns.documents import decision_document, template_document
from rowcall.engine.columns.templates import save_from
from rowcall.model import Code
from rowcall.store import decisions, jobs, templates
from rowcall.store.jobs import TemplateKey

router = APIRouter(prefix="/v1", tags=["columns"])
_TEMPLATES = "/column-mapping-templates"
_Source = Annotated[Text, Query(alias="sourceSystem", description="The system that writes such files.")]
_Variant = Annotated[Text, Query(description="Which of its kinds.")]


@router.get(_TEMPLATES, responses=refusals(Code.BAD_REQUEST))
def list_templates(at: TheService, caller: TheCaller, importer: Text | None = None) -> TemplateList:
    """The templates of the organisation."""
    with at.connection(caller) as connection:
        found = templates.templates_of(connection, caller.organisation, importer=importer)
    return TemplateList(items=[TemplateAnswer.model_validate(template_document(each)) for each in found])


@router.get(f"{_TEMPLATES}/by-source", responses=refusals(Code.BAD_REQUEST))
def list_templates_by_source(
    at: TheService, caller: TheCaller, source_system: _Source, importer: Text | None = None
) -> TemplateList:
    """The templates for files of one system, to choose from."""
    with at.connection(caller) as connection:
        found = templates.templates_of(connection, caller.organisation, source_system=source_system, importer=importer)
    return TemplateList(items=[TemplateAnswer.model_validate(template_document(each)) for each in found])


@router.get(f"{_TEMPLATES}/lookup", responses=refusals(Code.BAD_REQUEST, Code.TEMPLATE_NOT_FOUND))
def find_template(
    at: TheService,
    caller: TheCaller,
    source_system: _Source,
    variant: _Variant,
    importer: Annotated[Text, Query(description="What the files are for.")],
) -> TemplateAnswer:
    """The template that a file of this kind would be mapped by."""
    with at.connection(caller) as connection:
        found = templates.find_template(connection, caller.organisation, importer, TemplateKey(source_system, variant))
    return TemplateAnswer.model_validate(template_document(found))


@router.post(
    _TEMPLATES,
    status_code=201,
    responses={
        201: {"description": "The template.", "headers": headers("Location")},
        **refusals(Code.JOB_NOT_FOUND, Code.WRONG_STATE, Code.BODY_TOO_LARGE, Code.BAD_REQUEST),
    },
)
def save_template(
    at: TheService, caller: TheCaller, response: Response, wanted: Annotated[SaveTemplateRequest, Body()]
) -> TemplateAnswer:
    """Save the columns of a job, once they are settled, as a template. One of the same name is replaced."""
    key = TemplateKey(wanted.source_system, wanted.variant)
    with at.connection(caller) as connection:
        job = jobs.get_job(connection, str(wanted.job_id), organisation=caller.organisation)
        saved = save_from(connection, job, key, caller.account)
        audit(connection, caller, "template.save", saved.id, {"name": saved.name, "importer": saved.importer})
    response.headers["Location"] = f"/v1{_TEMPLATES}/{saved.id}"
    return TemplateAnswer.model_validate(template_document(saved))


@router.get(f"{_TEMPLATES}/{{template_id}}", responses=refusals(Code.TEMPLATE_NOT_FOUND))
def read_template(template_id: UUID, at: TheService, caller: TheCaller) -> TemplateAnswer:
    """A template."""
    with at.connection(caller) as connection:
        found = templates.get_template(connection, caller.organisation, template_id)
    return TemplateAnswer.model_validate(template_document(found))


@router.delete(f"{_TEMPLATES}/{{template_id}}", status_code=204, responses=refusals(Code.TEMPLATE_NOT_FOUND))
def delete_template(template_id: UUID, at: TheService, caller: TheCaller) -> None:
    """Take a template away. Jobs that used it keep their columns."""
    with at.connection(caller) as connection:
        found = templates.get_template(connection, caller.organisation, template_id)
        templates.delete_template(connection, caller.organisation, found.id)
        audit(connection, caller, "template.delete", found.id, {"name": found.name, "importer": found.importer})


@router.get("/column-decisions", responses=refusals(Code.BAD_REQUEST))
def list_column_decisions(at: TheService, caller: TheCaller, importer: Text | None = None) -> ColumnDecisionList:
    """What was decided of columns and is proposed when their headers come again."""
    with at.connection(caller) as connection:
        found = decisions.decisions_of(connection, caller.organisation, importer=importer)
    return ColumnDecisionList(items=[ColumnDecisionAnswer.model_validate(decision_document(each)) for each in found])


@router.delete("/column-decisions/{column_decision_id}", status_code=204, responses=refusals(Code.DECISION_NOT_FOUND))
def revoke_column_decision(column_decision_id: UUID, at: TheService, caller: TheCaller) -> None:
    """Have a decision proposed no more. Jobs keep the columns that they have."""
    with at.connection(caller) as connection:
        found = decisions.forget(connection, caller.organisation, column_decision_id)
        about = {"importer": found.importer, "header": found.written, "field": found.target_field}
        audit(connection, caller, "decision.revoke", found.id, about)
