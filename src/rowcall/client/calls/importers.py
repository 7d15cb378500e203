"""The part of the client that is about the server itself: what there is to import into, and how it is."""

from rowcall.client.answers import Importer, ImporterSummary, Readiness
from rowcall.client.calls.calls import Calls, nobody
from rowcall.client.downloading import Target, stream_to


class ImporterCalls(Calls):
    """What `Client` can be asked of importers, and of the server's health."""

    def importers(self) -> list[ImporterSummary]:
        """The importers that there are."""
        return self._asking.ask(list[ImporterSummary], "GET", "/v1/importers")

    def importer(self, name: str) -> Importer:
        """All about one: fields, rules, key."""
        return self._asking.ask(Importer, "GET", f"/v1/importers/{name}")

    def template(self, name: str, target: Target) -> int:
        """Write the workbook to fill in for an importer; how many bytes. A file is whole or not there."""
        return stream_to(self._asking, f"/v1/importers/{name}/template.xlsx", {}, target, nobody)

    def readiness(self) -> Readiness:
        """Whether the server can take files, and what it stands on."""
        return self._asking.ask(Readiness, "GET", "/health/ready", also=(503,))
