"""Which addresses may be connected to: public ones, and those that whoever runs the service has allowed."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Self

Address = IPv4Address | IPv6Address
USUAL_PORTS = frozenset({80, 443})

# IANA's registries of special addresses, written down: what `ipaddress` says of them differs between Python's versions.
_NOT_PUBLIC = [
    IPv4Network(text)
    for text in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
        *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24"),
        *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    )
]
_PUBLIC_6 = IPv6Network("2000::/3")
_NOT_PUBLIC_6 = [IPv6Network(text) for text in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")]
_NAT64 = IPv6Network("64:ff9b::/96")

METADATA_NAMES = frozenset(
    {
        *("metadata", "metadata.google.internal", "metadata.goog", "instance-data", "instance-data.ec2.internal"),
        *("metadata.azure.internal", "metadata.tencentyun.com", "metadata.packet.net", "metadata.platformequinix.com"),
        *("kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"),
    }
)
# where clouds tell a machine its secrets; one of them has a public address
_METADATA = frozenset(
    ip_address(text)
    for text in ("169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254")
)


def is_public(address: Address) -> bool:
    """Whether anybody on the internet could mean the same machine by this address."""
    meant = _carried(address)
    if meant in _METADATA:
        return False
    if isinstance(meant, IPv4Address):
        return not any(meant in network for network in _NOT_PUBLIC)
    return meant in _PUBLIC_6 and not any(meant in network for network in _NOT_PUBLIC_6)


def _carried(address: Address) -> Address:
    """The IPv4 address that an IPv6 one stands for, where gateways take it for that."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


_ENTRY = re.compile(r"(?:\[([^\]]+)\]|([^:\[\]]*)|([0-9a-f:./]*:[0-9a-f:./]*:[0-9a-f:./]*))(?::(\d{1,5}|\*))?")
_HOST = re.compile(r"[a-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is allowed: a name, a network, or every public host; on some port, any (0) or the usual ones."""

    name: str | None
    network: IPv4Network | IPv6Network | None
    port: int | None

    def fits_port(self, port: int) -> bool:
        return self.port == 0 or (port in USUAL_PORTS if self.port is None else port == self.port)

    def fits(self, host: str, address: Address) -> bool:
        if self.network is None:
            return host == self.name if self.name else is_public(address)
        for each in (address, _carried(address)):
            if each.version == self.network.version and each in self.network:
                exactly = self.network.num_addresses == 1
                return exactly or _carried(address) not in _METADATA  # a wide network doesn't mean those
        return False


@dataclass(frozen=True, slots=True)
class Allowed:
    """What is allowed beside public hosts on ports 80 and 443."""

    entries: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """From a setting: `files.internal, 10.1.0.0/16, localhost:8080, [::1]:*, :8443`. Raises ValueError."""
        return cls(tuple(_entry(each) for each in re.split(r"[\s,]+", text.lower()) if each))

    def names(self, host: str) -> bool:
        """Whether a host is allowed by its name."""
        return any(entry.name == host for entry in self.entries)

    def permits_port(self, port: int) -> bool:
        """Whether some host may be connected to on this port."""
        return port in USUAL_PORTS or any(entry.fits_port(port) for entry in self.entries)

    def permits(self, host: str, address: Address, port: int) -> bool:
        """Whether this host, at this address, may be connected to on this port."""
        if port in USUAL_PORTS and is_public(address):
            return True
        return any(entry.fits_port(port) and entry.fits(host, address) for entry in self.entries)


def _entry(text: str) -> Entry:
    match = _ENTRY.fullmatch(text)
    if match is None or text == ":*":
        raise ValueError(text)
    what = match[1] or match[2] or match[3] or ""
    port = None if match[4] is None else 0 if match[4] == "*" else int(match[4])
    try:
        return Entry(None, ip_network(what), port)
    except ValueError:
        if (what and not _HOST.fullmatch(what)) or "/" in text or (not what and port is None):
            raise
    return Entry(what or None, None, port)
