"""Where a call comes from: the peer itself, and what is said of it only by proxies that are trusted."""

import tracemalloc
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import RequestFactory

from config.environment import networks
from tasks_app.callers.peers import peer_of

OURS = ["10.0.0.0/8", "2001:db8:1::/48"]


def peer(settings: Any, remote: str, header: str = "", *, proxies: list[str], standard: bool = False) -> str | None:
    settings.A2A_TRUSTED_PROXIES = proxies
    settings.A2A_TRUST_FORWARDED = "forwarded" if standard else ""
    given = {"forwarded" if standard else "x-forwarded-for": header} if header else {}
    return peer_of(RequestFactory(headers=given).get("/", REMOTE_ADDR=remote))


@pytest.mark.parametrize(
    ("remote", "header", "expected"),
    [
        ("10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("198.51.100.9", "203.0.113.7", "198.51.100.9"),  # no proxy of ours has written it
        ("10.0.0.1", "192.0.2.66, 203.0.113.7", "203.0.113.7"),  # what stands before is made up
        ("10.0.0.1", "192.0.2.66, 203.0.113.7, 10.2.0.2", "203.0.113.7"),  # two proxies
        ("10.0.0.1", "10.3.0.3, 10.2.0.2", "10.3.0.3"),  # a caller inside
        ("10.0.0.1", "203.0.113.7:51234", "203.0.113.7"),
        ("10.0.0.1", "[2001:db8::7]:443", "2001:db8::7"),
        ("10.0.0.1", "2001:DB8:0::7", "2001:db8::7"),
        ("2001:db8:1::1", "203.0.113.7", "203.0.113.7"),
        ("::ffff:10.0.0.1", "203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "::ffff:203.0.113.7", "203.0.113.7"),
        ("10.0.0.1", "203.0.113.7, garbage", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.7,", "10.0.0.1"),
        ("10.0.0.1", "<script>", "10.0.0.1"),
        ("10.0.0.1", "999.1.1.1", "10.0.0.1"),
        ("10.0.0.1", ", ".join(["10.0.0.2"] * 3_000), "10.0.0.2"),
    ],
)
def test_a_header_counts_as_far_as_trusted_proxies_have_written_it(
    settings: Any, remote: str, header: str, expected: str
) -> None:
    assert peer(settings, remote, header, proxies=OURS) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("for=203.0.113.7;proto=https", "203.0.113.7"),
        ('proto=https;For="[2001:db8::7]:4711"', "2001:db8::7"),
        ("for=192.0.2.66, for=203.0.113.7;by=10.0.0.1, for=10.2.0.2", "203.0.113.7"),
        ("for=_hidden", "10.0.0.1"),
        ("for=unknown", "10.0.0.1"),
        ("proto=https", "10.0.0.1"),
    ],
)
def test_the_standard_header_is_read_where_it_is_the_one_of_the_proxy(
    settings: Any, header: str, expected: str
) -> None:
    assert peer(settings, "10.0.0.1", header, proxies=OURS, standard=True) == expected


@pytest.mark.parametrize(
    ("remote", "expected"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("", None),
        ("fe80::1%eth0", "fe80::1%eth0"),
    ],
)
def test_without_proxies_no_header_counts(settings: Any, remote: str, expected: str | None) -> None:
    assert peer(settings, remote, "192.0.2.66", proxies=[]) == expected


def test_a_proxy_that_is_no_address_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "10.0.0.1, fd00::/8")
    assert networks("X") == ["10.0.0.1", "fd00::/8"]
    for wrong in ("proxy.example", "10.0.0.1/8", "10.0.0.0/33"):
        monkeypatch.setenv("X", wrong)
        with pytest.raises(ImproperlyConfigured, match=f"X: '{wrong}' is neither an IP address nor a network"):
            networks("X")


@pytest.mark.parametrize("standard", [False, True])
def test_long_entries_of_callers_are_not_kept_in_memory(settings: Any, standard: bool) -> None:
    tracemalloc.start()
    try:
        for number in range(100):
            entry = f"{standard}{number}{'x' * 30_000}"
            header = f"for={entry}" if standard else entry
            assert peer(settings, "10.0.0.1", header, proxies=OURS, standard=standard) == "10.0.0.1"
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
