"""Only what is plainly a public place of the web is gone to, unless whoever runs the service says otherwise."""

from ipaddress import ip_address

import pytest

from rowcall.config import settings_from
from rowcall.errors import Final, Retryable
from rowcall.sources.addresses import Allowed
from rowcall.sources.guard import Guard, resolved
from rowcall.sources.place import joined, parsed


def fixed(*addresses: str) -> Guard:
    return Guard(resolve=lambda _, __: list(addresses))


def test_a_public_place_is_gone_to_at_the_addresses_that_were_checked() -> None:
    place = parsed("HTTPS://Files.Example.ORG./a%20b/ü.csv?x=1#part")
    assert (place.scheme, place.host, place.port) == ("https", "files.example.org", 443)
    assert place.target == "/a%20b/%C3%BC.csv?x=1"
    assert place.name == "ü.csv"
    assert fixed("93.184.216.34", "2606:4700::1111").addresses(place) == ("93.184.216.34", "2606:4700::1111")


@pytest.mark.parametrize(
    "host",
    [
        *(
            "127.1",
            "0",
            "2130706433",
            "0x7f000001",
            "0177.0.0.1",
            "0x7f.1",
            "127.0.0.1",
            "127.0.0.1.",
            "0.0.0.0",
            "10.0.0.1",
        ),
        *("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.168.1.1", "172.31.0.1", "224.0.0.1", "240.0.0.1"),
        *(
            "[::1]",
            "[::]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::ffff:0:127.0.0.1]",
            "[::127.0.0.1]",
            "[fe80::1]",
        ),
        *(
            "[fd00:ec2::254]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b:1::1]",
            "[2002:7f00:1::]",
            "[2001::1]",
            "[ff02::1]",
            "[fec0::1]",
        ),
        *("[2001:db8::1]", "metadata.google.internal", "METADATA", "instance-data"),
    ],
)
def test_addresses_that_are_not_public_are_refused_however_they_are_written(host: str) -> None:
    with pytest.raises(Final) as caught:
        Guard(resolve=resolved).addresses(parsed(f"http://{host}/x"))
    assert caught.value.code == "URL_REFUSED"


@pytest.mark.parametrize(
    "addresses",
    [
        *(["10.1.2.3"], ["93.184.216.34", "127.0.0.1"], ["93.184.216.34", "::ffff:10.0.0.1"], ["fe80::1%eth0"]),
        *(["64:ff9b::a00:1"], ["2002:a00:1::"], ["100.64.0.1"], ["169.254.169.254"]),
    ],
)
def test_names_are_refused_if_any_of_their_addresses_is_not_public(addresses: list[str]) -> None:
    with pytest.raises(Final) as caught:
        fixed(*addresses).addresses(parsed("http://looks.fine.example/"))
    assert caught.value.code == "URL_REFUSED"
    assert addresses[-1] not in str(caught.value), "what our resolver knows is nobody's business"


def test_a_public_address_behind_a_gateway_is_public() -> None:
    assert fixed("64:ff9b::5db8:d822").addresses(parsed("http://example.org/")) == ("64:ff9b::5db8:d822",)


@pytest.mark.parametrize(
    "url",
    [
        *("ftp://example.org/x", "file:///etc/passwd", "gopher://example.org/", "//example.org/", "example.org", ""),
        *("simplecache::https://example.org/x", "zip://x::https://example.org/", "https:/example.org", "https://"),
        *("http://a@b@127.0.0.1/", "http://ok\\@127.0.0.1/", "http:\\\\example.org", "http://example.org\\@127.0.0.1/"),
        *("http://１２７.0.0.1/", "http://127。0。0。1/", "http://ex\u200bample.org/", "http://example.org/\u202egpj"),
        *(
            "http://example.org/a b",
            "http://example.org/a\r\nHost: x",
            "http://example.org\t/",
            "http://ex%61mple.org/",
        ),
        *("http://[::1%25eth0]/", "http://[1::2::3]/", "http://example.org:0/", "http://example.org:99999/"),
        *(
            "http://example.org:80:80/",
            "http://example.org:/",
            "http://-a.org/",
            "http://a..b/",
            "http://bücher.example/",
        ),
        *(
            "http://1.2.3.4.5/",
            "http://256.1.1.1/",
            "http://①.example/",
            f"http://{'a' * 64}.org/",
            "http://a/" + "x" * 5000,
        ),
    ],
)
def test_what_could_be_understood_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(Final) as caught:
        parsed(url)
    assert caught.value.code == "URL_REFUSED"


def test_what_stands_before_the_sign_is_a_login_and_not_the_host() -> None:
    place = parsed("http://ok.example%3A80:p%40ss@127.0.0.1/x?token=abc")
    assert (place.host, place.login) == ("127.0.0.1", ("ok.example:80", "p@ss"))
    with pytest.raises(Final) as caught:
        Guard().admit(place)
    for text in (str(caught.value), place.shown, repr(place)):
        assert "p@ss" not in text
        assert "abc" not in text


@pytest.mark.parametrize("port", [22, 25, 5432, 6379, 8080, 9200])
def test_ports_of_other_services_are_refused(port: int) -> None:
    with pytest.raises(Final, match=f"port {port}"):
        fixed("93.184.216.34").addresses(parsed(f"http://example.org:{port}/"))


@pytest.mark.parametrize(
    ("setting", "url", "address"),
    [
        ("files.internal", "http://files.internal/", "10.0.0.1"),
        ("10.0.0.0/8", "http://anything.example/", "10.9.9.9"),
        ("10.0.0.0/8", "http://anything.example/", "::ffff:10.9.9.9"),
        ("fd00::/8", "http://x.example/", "fd00::5"),
        ("[fd00::]/8:8080", "http://x.example/", None),
        (":8443", "https://example.org:8443/", "93.184.216.34"),
        ("a.internal:9000, b.internal:*", "http://b.internal:1234/", "10.0.0.1"),
        ("metadata.google.internal", "http://metadata.google.internal/", "169.254.169.254"),
        ("169.254.169.254", "http://x.example/", "169.254.169.254"),
        ("[::1]:*", "http://[::1]:81/", "::1"),
    ],
)
def test_what_is_allowed_by_setting_is_gone_to(setting: str, url: str, address: str | None) -> None:
    if address is None:
        with pytest.raises(Final, match="ROWCALL_URL_ALLOW"):
            settings_from({"ROWCALL_URL_ALLOW": setting})
        return
    allowed = settings_from({"ROWCALL_URL_ALLOW": setting}).url_allow
    (found,) = Guard(allowed, lambda _, __: [address]).addresses(parsed(url))
    assert ip_address(found) == ip_address(address)


@pytest.mark.parametrize(
    ("setting", "url", "address"),
    [
        ("files.internal", "http://files.internal:8080/", "10.0.0.1"),
        ("files.internal:8080", "http://other.internal:8080/", "10.0.0.1"),
        ("files.internal", "http://evil-files.internal/", "10.0.0.1"),
        ("10.0.0.0/8", "http://x.example/", "192.168.0.1"),
        ("169.254.0.0/16", "http://x.example/", "169.254.169.254"),
        (":8443", "https://example.org:8443/", "10.0.0.1"),
    ],
)
def test_what_is_allowed_is_no_more_than_that(setting: str, url: str, address: str) -> None:
    with pytest.raises(Final):
        Guard(Allowed.of(setting), lambda _, __: [address]).addresses(parsed(url))


@pytest.mark.parametrize("setting", ["http://x", "10.0.0.1/8", "a b:c", ":*", "x:99999999", "10.0.0.0/40"])
def test_settings_that_say_nothing_clear_are_refused(setting: str) -> None:
    with pytest.raises(Final, match="ROWCALL_URL_ALLOW"):
        settings_from({"ROWCALL_URL_ALLOW": setting})


def test_redirects_are_read_by_the_same_parser() -> None:
    place = parsed("https://ann:secret@example.org/a/b?c")
    assert joined(place, "../d").shown == "https://example.org/d"
    assert joined(place, "/e").login == ("ann", "secret")
    assert joined(place, "https://other.example/").login is None
    for location in ("http://a\\@b/", "ht\ntp://x/", "javascript:alert(1)", "https://[::1/", "//a@b@c/"):
        with pytest.raises(Final) as caught:
            joined(place, location)
        assert caught.value.code == "URL_REFUSED"


def test_a_name_that_is_unknown_is_told() -> None:
    with pytest.raises((Final, Retryable)) as caught:
        resolved("nobody.invalid", 80)
    assert caught.value.code == "URL_UNREACHABLE"
