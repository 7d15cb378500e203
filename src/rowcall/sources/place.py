"""What a URL says, by one strict parser: what it finds is connected to, and nothing parses the text again."""

import ipaddress
import re
import unicodedata
from dataclasses import dataclass, field
from urllib.parse import quote, unquote, urljoin

from rowcall.errors import Final
from rowcall.model import Code

_LONGEST = 4096
_PORTS = {"http": 80, "https": 443}
_SCHEME = re.compile(r"(https?)://(.*)", re.IGNORECASE | re.DOTALL)
_PARTS = re.compile(r"([^/?#]*)([^?#]*)(\?[^#]*)?(?:#.*)?", re.DOTALL)
_AUTHORITY = re.compile(
    r"(?:([\w.~!$&'()*+,;=:%-]*)@)?(\[[0-9a-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?", re.ASCII | re.IGNORECASE
)
_NAME = re.compile(r"(?!-)[a-z0-9_-]{1,63}(\.[a-z0-9_-]{1,63})*\.?")
_LIKE_A_NUMBER = re.compile(r"(\d+|0x[0-9a-f]*)\.?")
_KEPT = "/?:@!$&'()*+,;=~%"


def is_url(text: str) -> bool:
    """Whether a text is meant as one that a file can be fetched from."""
    return _SCHEME.fullmatch(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a URL leads. Its login and query may be secrets: `shown` has neither."""

    scheme: str
    host: str
    """A name, or an address without brackets."""
    port: int
    path: str
    query: str = field(repr=False)
    login: tuple[str, str] | None = field(repr=False)

    @property
    def target(self) -> str:
        """What the server is asked for."""
        return (self.path or "/") + self.query

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + ("" if self.port == _PORTS[self.scheme] else f":{self.port}")

    @property
    def shown(self) -> str:
        """The URL as it may be shown and logged."""
        return f"{self.origin}{self.path or '/'}" + ("?…" if self.query else "")

    @property
    def name(self) -> str:
        """A name for the file."""
        last = unquote(self.path.rpartition("/")[2], errors="replace")
        return "".join(sign for sign in last if sign.isprintable() and sign not in "/\\")[:255] or self.host


def parsed(text: str) -> Place:
    """The parts of a URL; whatever could be understood in two ways is refused."""
    if len(text) > _LONGEST:
        raise _refused(f"is longer than {_LONGEST:,} characters")
    _require_visible(text)
    scheme = _SCHEME.fullmatch(text)
    if scheme is None:
        raise _refused("doesn't begin with http:// or https://")
    parts = _PARTS.fullmatch(scheme[2])
    authority = _AUTHORITY.fullmatch(parts[1]) if parts else None
    if parts is None or authority is None:
        raise _refused("has no host that can be understood", hint="Names beyond ASCII are written with xn--.")
    kind = scheme[1].lower()
    return Place(
        scheme=kind,
        host=_host(authority[2].lower()),
        port=_port(authority[3], kind),
        path=quote(parts[2], safe=_KEPT),
        query=quote(parts[3] or "", safe=_KEPT),
        login=_login(authority[1]),
    )


def joined(place: Place, location: str) -> Place:
    """Where a redirect leads. The login goes along only to the same server."""
    _require_visible(location)  # joining drops some of what is refused here
    try:
        there = parsed(urljoin(place.origin + place.target, location))
    except ValueError as error:
        raise _refused("is redirected to something that is no URL") from error
    login = there.login or (place.login if there.origin == place.origin else None)
    return Place(scheme=there.scheme, host=there.host, port=there.port, path=there.path, query=there.query, login=login)


def _require_visible(text: str) -> None:
    if "\\" in text or any(unicodedata.category(sign)[0] in "CZ" for sign in text):
        raise _refused("has a backslash, a blank or an invisible character in it")


def _host(text: str) -> str:
    if text.startswith("["):
        try:
            return ipaddress.IPv6Address(text[1:-1]).compressed
        except ValueError:
            raise _refused("has an IPv6 address that is none") from None
    if _LIKE_A_NUMBER.fullmatch(text.removesuffix(".").rpartition(".")[2]):
        # resolvers read 127.1, 0x7f000001 and 0177.0.0.1 as addresses; we read only what nobody reads otherwise
        try:
            return str(ipaddress.IPv4Address(text))
        except ValueError:
            raise _refused("has an address that isn't four plain numbers") from None
    if not _NAME.fullmatch(text) or len(text) > 253:
        raise _refused("has a host that is no name")
    return text.removesuffix(".")


def _port(text: str | None, scheme: str) -> int:
    port = int(text) if text else _PORTS[scheme]
    if not 0 < port < 65536:
        raise _refused("has a port that is none")
    return port


def _login(text: str | None) -> tuple[str, str] | None:
    if not text:
        return None
    user, _, password = text.partition(":")
    login = unquote(user), unquote(password)
    if not all(part.isprintable() for part in login):
        raise _refused("has a login with control characters")
    return login


def _refused(why: str, *, hint: str = "") -> Final:
    return Final(Code.URL_REFUSED, f"The URL {why}.", hint=hint)
