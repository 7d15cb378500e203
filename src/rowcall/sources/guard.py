"""Decides whether a place may be connected to, and at which addresses: it is asked anew before every connection."""

import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from rowcall.errors import Final, Retryable
from rowcall.model import Code
from rowcall.sources.addresses import METADATA_NAMES, Address, Allowed
from rowcall.sources.place import Place

Resolve = Callable[[str, int], Sequence[str]]
"""Takes a name and a port, gives addresses."""


def resolved(name: str, port: int) -> list[str]:
    """The addresses of a name, as the system knows them."""
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    except socket.gaierror as error:
        kind = Retryable if error.errno == socket.EAI_AGAIN else Final
        raise kind(Code.URL_UNREACHABLE, f"The host {name} has no address: {error.strerror}.") from error
    except (OSError, UnicodeError) as error:
        raise Final(Code.URL_UNREACHABLE, f"The host {name} can't be looked up.") from error
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(frozen=True, slots=True)
class Guard:
    """What stands between a user's URL and our network."""

    allowed: Allowed = field(default_factory=Allowed)
    resolve: Resolve = resolved

    def admit(self, place: Place) -> None:
        """Refuse what can be refused without asking for the host's addresses."""
        if not self.allowed.permits_port(place.port):
            raise _refused(place, f"is on port {place.port}, where other services are")
        if place.host in METADATA_NAMES and not self.allowed.names(place.host):
            raise _refused(place, "is a cloud's metadata service")
        if address := _literal(place.host):
            self._check(place, [address])

    def addresses(self, place: Place) -> tuple[str, ...]:
        """Where to connect to: these addresses and no others, though a name may have others a moment later."""
        self.admit(place)
        if _literal(place.host):
            return (place.host,)
        found = self.resolve(place.host, place.port)
        if not found:
            raise Final(Code.URL_UNREACHABLE, f"The host {place.host} has no address.")
        # with a zone, an address is link-local; and what isn't known to be an address is none
        addresses = [_literal(each.partition("%")[0]) for each in found]
        self._check(place, [each for each in addresses if each])
        return tuple(map(str, filter(None, addresses)))

    def _check(self, place: Place, addresses: Sequence[Address]) -> None:
        """All of them, not the first: which one is connected to is nobody's choice."""
        if not addresses or not all(self.allowed.permits(place.host, each, place.port) for each in addresses):
            raise _refused(place, "isn't a public place")


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _refused(place: Place, why: str) -> Final:
    hint = "Whoever runs this service can allow it: ROWCALL_URL_ALLOW."
    return Final(Code.URL_REFUSED, f"{place.shown} {why}.", hint=hint)
