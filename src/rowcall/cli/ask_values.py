"""What a person at a terminal is asked about values that nothing matches."""

from rowcall.cli.desk import Desk
from rowcall.cli.prompt import Option, ask_text, choose
from rowcall.cli.screen import short
from rowcall.client.answers import Job
from rowcall.client.answers.values import Candidate, Value, ValueField, ValueSaid
from rowcall.words import counted

_SEARCH = "search"
Answer = ValueSaid | str


def settle_values(at: Desk, job: Job) -> Job:
    """Ask about each value that isn't settled, the most frequent first, and let the job go on. Raises `Left`."""
    name = str(job.id)
    while (page := at.values(name, status="UNRESOLVED", most=1)).items:
        fields = {field.field: field for field in page.fields}
        value = page.items[0]
        said = _asked(at, name, value, fields[value.field], left=sum(field.unresolved for field in page.fields))
        at.change_values(name, [said])
    return at.confirm_values(name)


def _asked(at: Desk, job: str, value: Value, field: ValueField, *, left: int) -> ValueSaid:
    candidates = [*([value.target] if value.target else []), *value.candidates]
    there = counted(left, "value is", "values are")
    about = [f"{there} left; this one is in {counted(value.occurrences, 'row')}. {value.reason}"]
    within = f" in {short(value.scope.label, 60)}" if value.scope else ""
    while True:
        question = f"{value.field}: what is {value.value!r}{within}?"
        said = choose(question, _options(value, field, candidates), about=about)
        if isinstance(said, ValueSaid):
            return said
        scope = value.scope.id if value.scope else None
        found = at.candidates(job, value.field, ask_text("Search for:"), scope=scope)
        candidates = found.items
        about = [] if candidates else ["Nothing like that was found."]


def _options(value: Value, field: ValueField, candidates: list[Candidate]) -> list[Option[Answer]]:
    seen = {candidate.id: candidate for candidate in candidates}
    options: list[Option[Answer]] = [
        Option(ValueSaid(ids=[value.id], target_id=each.id), each.label, f"{each.score} % alike" if each.score else "")
        for each in seen.values()
    ]
    if field.may_create and (value.scope or not field.within):
        options.append(Option(ValueSaid(ids=[value.id], create=True), "create it"))
    return [
        *options,
        Option(_SEARCH, "search for another"),
        Option(ValueSaid(ids=[value.id], ignore=True), "leave the field empty"),
        Option(ValueSaid(ids=[value.id], skip=True), "skip rows with it"),
    ]
