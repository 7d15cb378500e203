"""The part of the client that is about columns: settling them, templates, remembered decisions."""

from uuid import UUID

from rowcall.client.answers import Job, TemplateName, Wire
from rowcall.client.answers.columns import (
    ColumnAnswers,
    ColumnDecision,
    ColumnMappings,
    ColumnWarnings,
    TargetField,
    Template,
)
from rowcall.client.calls.calls import AnyJob, Calls

_TEMPLATES = "/v1/column-mapping-templates"


class _Templates(Wire, frozen=True):
    items: list[Template]


class _Decisions(Wire, frozen=True):
    items: list[ColumnDecision]


class ColumnCalls(Calls):
    """What `Client` can be asked of columns."""

    def column_mappings(self, job: AnyJob) -> ColumnMappings:
        """The columns of a job: the field each goes to, how sure that is, why, and what is still open."""
        return self._asking.ask(ColumnMappings, "GET", f"{self._path(job)}/column-mappings")

    def change_columns(self, job: AnyJob, said: ColumnAnswers) -> ColumnMappings:
        """Say which column is which field, join columns, give fields a value for all rows."""
        return self._tell(ColumnMappings, "PUT", f"{self._path(job)}/column-mappings", said)

    def confirm_columns(self, job: AnyJob) -> Job:
        """Let a job go on with its columns as they are."""
        return self._asking.ask(Job, "POST", f"{self._path(job)}/column-mappings/confirm", safe=False)

    def reopen_columns(self, job: AnyJob) -> Job:
        """Go back to the columns of a job that has written nothing."""
        return self._asking.ask(Job, "POST", f"{self._path(job)}/column-mappings/reopen", safe=False)

    def column_warnings(self, job: AnyJob) -> ColumnWarnings:
        """What should be known before the columns of a job are confirmed."""
        return self._asking.ask(ColumnWarnings, "GET", f"{self._path(job)}/column-mappings/warnings")

    def target_fields(self, job: AnyJob) -> list[TargetField]:
        """The fields that columns of a job can go to, the required ones first."""
        return self._asking.ask(list[TargetField], "GET", f"{self._path(job)}/target-fields")

    # -------------------------------------------------------------------------------------- templates and decisions

    def apply_template(self, job: AnyJob, source_system: str, variant: str) -> ColumnMappings:
        """Map the columns of a job that waits as a template has them."""
        name = TemplateName(source_system=source_system, variant=variant)
        return self._tell(ColumnMappings, "POST", f"{self._path(job)}/column-mappings/template", name)

    def templates(self, *, source_system: str | None = None, importer: str | None = None) -> list[Template]:
        """The templates of the organisation; of one source system, or for one importer."""
        params = {"sourceSystem": source_system, "importer": importer}
        path = _TEMPLATES if source_system is None else f"{_TEMPLATES}/by-source"
        given = {name: value for name, value in params.items() if value is not None}
        return self._asking.ask(_Templates, "GET", path, params=given).items

    def save_template(self, job: AnyJob, source_system: str, variant: str) -> Template:
        """Save the settled columns of a job as a template. One of the same name is replaced."""
        job_id = self._path(job).rpartition("/")[2]
        order = {"jobId": job_id, "sourceSystem": source_system, "variant": variant}
        return self._tell(Template, "POST", _TEMPLATES, order)

    def delete_template(self, template: Template | UUID) -> None:
        """Take a template away."""
        template_id = template.id if isinstance(template, Template) else template
        self._asking.answer("DELETE", f"{_TEMPLATES}/{template_id}", safe=False)

    def column_decisions(self, *, importer: str | None = None) -> list[ColumnDecision]:
        """What was decided of columns and is proposed when their headers come again."""
        given = {"importer": importer} if importer is not None else {}
        return self._asking.ask(_Decisions, "GET", "/v1/column-decisions", params=given).items

    def revoke_column_decision(self, decision: ColumnDecision | UUID) -> None:
        """Have a decision proposed no more."""
        decision_id = decision.id if isinstance(decision, ColumnDecision) else decision
        self._asking.answer("DELETE", f"/v1/column-decisions/{decision_id}", safe=False)
