"""`rowcall doctor`: is all well with Rowcall's surroundings, or with a job?"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import typer
from psycopg import Connection
from rich.console import Console
from rich.markup import escape as literal

from rowcall.cli.desk import Server, client_of
from rowcall.cli.options import AsJson
from rowcall.cli.screen import screen, tell, visible
from rowcall.client import Client
from rowcall.config import Settings, settings_from
from rowcall.engine import surroundings
from rowcall.engine.doctor import Finding, Verdict, verify_job
from rowcall.engine.failures import failure_of
from rowcall.errors import Final, RowcallError
from rowcall.importer.registry import Registry, load_registry
from rowcall.model import Code
from rowcall.store.db import reach_database
from rowcall.store.grants import require_grants
from rowcall.store.jobs import get_job
from rowcall.store.migrate import pending as pending_of_rowcall
from rowcall.store.operations import has_queue

_COLOURS = {
    Verdict.OK: "green",
    Verdict.NOTE: "yellow",
    Verdict.SKIPPED: "dim",
    Verdict.FAILED: "bold red",
    Verdict.VIOLATED: "bold red",
}


def doctor(
    verify: Annotated[
        str | None, typer.Option(metavar="JOB", help="Check what must hold of this job, each by query.")
    ] = None,
    server: Server = None,
    as_json: AsJson = False,
) -> None:
    """Check database, tables, file store, importers and leftovers; or verify that a job's account is right.

    It changes nothing. Of a server, it tells what that finds of itself. Exit code 0: all is well; 1: something is not.
    """
    if client := client_of(server):
        with client:
            if verify:
                told = f"A job is verified by queries to the database itself, which {client.url} doesn't take."
                raise Final(Code.BAD_OPTION, told, hint="Run it there, without --server and ROWCALL_SERVER.")
            findings = list(_of_server(client))
    else:
        findings = list(_verified(verify) if verify else _surroundings())
    if as_json:
        tell({"ok": not _bad(findings), "findings": [_document(f) for f in findings]})
    else:
        show(screen(), findings)
    if _bad(findings):
        raise typer.Exit(1)


def _bad(findings: Sequence[Finding]) -> bool:
    return any(finding.verdict.bad for finding in findings)


def _verified(job: str) -> list[Finding]:
    declared = load_registry().by_name()
    with reach_database(settings_from()) as database, database.connect("doctor") as connection:
        if pending := pending_of_rowcall(connection):
            told = f"The database lacks {', '.join(pending)}: what this version verifies is not there yet."
            raise Final(Code.MIGRATIONS_PENDING, told, hint="`rowcall migrate` applies them.")
        found = get_job(connection, job)
        return verify_job(connection, found, declared.get(found.importer), tuple(declared.values()))


def _of_server(client: Client) -> Iterator[Finding]:
    """What a server tells of itself, and whether it takes our key."""
    try:
        ready = client.readiness()
        verdict = Verdict.FAILED if ready.status == "unready" else Verdict.OK
        yield Finding(name="server", said=f"{client.url} is {ready.status}", verdict=verdict)
        for name, check in ready.checks.items():
            verdict = Verdict.OK if check.ok else Verdict.FAILED if check.required else Verdict.NOTE
            yield Finding(name=name, said=check.detail or ("well" if check.ok else "not well"), verdict=verdict)
        count = len(client.importers())
        yield Finding(name="key", said=f"it is taken; there are {count} importers")
    except RowcallError as error:
        yield surroundings.failed("server", error.message, error.hint)


def _surroundings() -> Iterator[Finding]:
    """Each check; one that can't be made is a finding too, and ends those that build on it."""
    name = "settings"
    try:
        settings = settings_from()
        yield surroundings.check_settings(settings)
        yield surroundings.check_data_dir(settings)
        yield surroundings.check_file_store(settings)
        name = "importers"
        registry = load_registry()
        name = "database"
        yield from _with_database(settings, registry)
    except Exception as error:
        failure = failure_of(error)
        yield surroundings.failed(name, failure.message, failure.hint)


def _with_database(settings: Settings, registry: Registry) -> Iterator[Finding]:
    with reach_database(settings) as database, database.connect("doctor") as connection:
        yield surroundings.check_database(connection)
        require_grants(connection)
        yield surroundings.check_migrations(connection, registry, _pending_of_queue(connection))
        yield from surroundings.check_importers(connection, registry)
        if not pending_of_rowcall(connection):
            yield surroundings.check_mark(connection, settings)
            yield surroundings.check_api_role(connection)
            yield surroundings.check_jobs(connection)
            yield surroundings.check_workers(connection)
            yield from surroundings.check_together(connection)
            yield from surroundings.check_files(connection, settings)


def _pending_of_queue(connection: Connection[Any]) -> list[str]:
    """Of a queue that is there: without a service there is none."""
    if not has_queue(connection):
        return []
    from rowcall.worker.queue import pending_of_queue  # loads Procrastinate

    return pending_of_queue(connection)


def _document(finding: Finding) -> dict[str, Any]:
    return {
        "name": finding.name,
        "verdict": finding.verdict,
        "said": finding.said,
        "count": finding.count,
        "examples": finding.examples,
        "hint": finding.hint,
    }


def show(console: Console, findings: Sequence[Finding]) -> None:
    """Tell a person what was found."""
    wide = max(len(finding.name) for finding in findings)
    for finding in findings:
        verdict = f"[{_COLOURS[finding.verdict]}]{finding.verdict.value:8}[/]"
        console.print(f"{verdict}  {literal(finding.name):{wide}}  {literal(finding.said)}", soft_wrap=True)
        for example in finding.examples:
            console.print(f"{'':10}{'':{wide}}  [dim]{literal(visible(example))}[/]", soft_wrap=True)
        if finding.count > len(finding.examples):
            console.print(f"{'':10}{'':{wide}}  [dim]and {finding.count - len(finding.examples):,} more[/]")
        if finding.hint:
            console.print(f"{'':10}{'':{wide}}  {literal(finding.hint)}", style="dim", soft_wrap=True)
