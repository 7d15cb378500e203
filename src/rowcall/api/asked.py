"""What is asked for with a file: read, checked as far as it can be before the file is stored, and known again."""

import hashlib
from dataclasses import dataclass

import msgspec

from rowcall.api.models.configs import ImportConfig
from rowcall.api.service import Caller, Service
from rowcall.engine.context import scope_of
from rowcall.engine.start import settled_config
from rowcall.errors import DoesNotFit
from rowcall.store import requests
from rowcall.store.jobs import JobConfig
from rowcall.store.templates import find_template


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is to be done with a file."""

    importer: str
    """What it is known as."""
    told: ImportConfig
    config: JobConfig
    """The same, with its context as the importer reads it."""
    scope: str | None

    def marks(self, file_name: str) -> str:
        """Tells this from other requests as far as it can be told before the file has come."""
        asked = [self.importer, file_name, msgspec.to_builtins(self.config), self.told.hold]
        return f"{hashlib.sha256(msgspec.json.encode(asked)).hexdigest()}:"

    def fingerprint(self, file_name: str, content: str | None) -> str:
        """The same with the file: its hash, or where it is."""
        return self.marks(file_name) + hashlib.sha256((content or "").encode()).hexdigest()


def asked_for(at: Service, name: str, config: str, context: str = "{}", *, config_at: str) -> Asked:
    """What is asked for, which the importer can work with."""
    importer = at.registry.importer(name)
    told = ImportConfig.from_text(config, at=config_at).about(context, at=config_at.replace("config", "context"))
    try:
        settled = settled_config(importer, told.job_config())
    except DoesNotFit as error:
        wrong = [{**each, "at": f"{config_at}/{each['at']}"} for each in error.errors]
        raise DoesNotFit(error.code, error.message, hint=error.hint, errors=wrong) from error
    return Asked(importer=at.registry.name_of(importer), told=told, config=settled, scope=scope_of(importer, settled))


def foresee(
    at: Service, caller: Caller, asked: Asked, file_name: str, key: str | None, sha256: str | None = None
) -> None:
    """Refuse what would be refused when the file is stored, as far as it can be known; `sha256` once it has come."""
    if not (key or asked.scope is not None or asked.config.template):
        return
    marks = asked.fingerprint(file_name, sha256) if sha256 else asked.marks(file_name)
    with at.connection(caller) as connection:
        if asked.config.template:
            find_template(connection, caller.organisation, asked.importer, asked.config.template)
        requests.foresee(connection, asked.importer, caller.organisation, asked.scope, key=key, marks=marks)
