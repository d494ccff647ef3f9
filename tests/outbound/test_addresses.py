"""Addresses that may be called, and hostile ones that are not even connected to."""

import asyncio
from typing import Any

import httpx
import pytest

from tasks_app.outbound import dialling, policy
from tasks_app.outbound.policy import Blocked, Unknown
from tests.outbound.listener import PUBLIC, Listener

HOSTILE = [
    # Loopback, in numbers of one to four parts, decimal, octal and hexadecimal, and by name.
    *"127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 017700000001".split(),
    *"127.000.000.001 127.255.255.254 0.0.0.0 0".split(),
    *"localhost LOCALHOST localhost. 127.0.0.1. localhost.localdomain.".split(),
    # IPv6: loopback, embedded IPv4, link-local, site-local, unique local and multicast.
    *"[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1]".split(),
    *"[64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [fe80::1] [fe80::1%25lo] [fe80::1%lo]".split(),
    *"[::1%25lo] [fec0::1] [fd00:ec2::254] [ff02::1]".split(),
    # IPv4: private networks, metadata of clouds, documentation, multicast, reserved.
    *"10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 100.100.100.200 192.0.0.192 192.0.2.1".split(),
    *"198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255".split(),
    *"168.63.129.16 192.88.99.1".split(),
    # Digits, dots and letters of other scripts.
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "127\u30020\u30020\u30021",
    "\uff11\uff12\uff17.0.0.1",
    "\u0661\u0662\u0667.0.0.1",
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
    # Two parsers may read two different hosts.
    *"example.org@127.0.0.1 127.0.0.1@example.org user:pass@127.0.0.1 127.0.0.1\\@example.org".split(),
    *"example.org\\.127.0.0.1 127.0.0.1%00example.org %31%32%37.0.0.1 127.0.0.1#@example.org".split(),
    *"127.0.0.1?@example.org".split(),
    "127.0.0.1 ",
    "127.0.0.1\t",
    # No host at all.
    "",
    *". .. - a..b [127.0.0.1] ::1 [::1 1.2.3.4.5 0x".split(),
    "a" * 64,
    # IPv6 outside of the allocated networks.
    *"[::ffff:0:7f00:1] [::1:2] [1::1] [200::1] [4000::1] [5f00::1] [fe00::1] [64:ff9b:2::1] [3fff::1]".split(),
]


@pytest.mark.parametrize("host", HOSTILE, ids=[f"{n}:{ascii(host)[:40]}" for n, host in enumerate(HOSTILE)])
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_hostile_address_is_refused_and_nothing_is_connected_to(
    host: str, scheme: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only this name may use plain HTTP, so that the check of the address refuses all others.
    settings.A2A_OUTBOUND_HOSTS = ["only.this.one"]

    async def story() -> int:
        async with Listener() as listener:
            port = f":{listener.port}" if "@" not in host[-12:] else ""
            url = f"{scheme}://{host}{port}/hook"
            with pytest.raises((Blocked, Unknown)):
                await policy.check(url)
            async with dialling.client(seconds=2) as client:
                # The client refuses too. Its parser may read another host than ours.
                with pytest.raises((Blocked, Unknown, httpx.InvalidURL, httpx.TransportError, ValueError)):
                    await client.post(url, content=b"{}")
            await asyncio.sleep(0.01)
            return listener.hits

    resolved = policy.lookup

    async def lookup(name: str, at: int, lookups: policy.Lookups) -> policy.Answers:
        # Offline: names that are not of this machine do not exist.
        if name in {"example.org", "a", "-"}:
            raise OSError
        return await resolved(name, at, lookups)

    monkeypatch.setattr(policy, "lookup", lookup)
    assert asyncio.run(story()) == 0


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("ftp://example.org/", "must begin with https://"),
        ("//example.org/", "https"),
        ("example.org", "https"),
        ("https:/x", "https"),
        ("javascript:alert(1)", "https"),
        ("file:///etc/passwd", "https"),
        ("http://example.org/", "https://"),
        ("https://example.org:22/", "port"),
        ("https://example.org:80/", "port"),
        ("https://example.org:0/", "port"),
        ("https://example.org:65536/", "port"),
        ("https://example.org:99999999/", "https"),
        ("https://example.org/\r\nX: y", "https"),
        ("https://example.org/\u00e9", "ASCII"),
        ("https://é.org/", "ASCII"),
        ("https://example.org/a b", "https"),
        ("https://ex\0ample.org/", "https"),
        ("gopher://example.org", "https"),
        ("https://" + "a." * 130 + "org/", "host name"),
        ("https://1.2.3/", "usual form"),
        *((f"https://{name}/", "xn--") for name in ("xn--0.x", "xn--" + "z" * 59 + ".org")),
        ("", "https"),
    ],
)
def test_an_address_that_may_not_be_says_why(url: str, word: str) -> None:
    with pytest.raises(Blocked) as told:
        policy.target(url)
    assert word in str(told.value)


def test_a_server_that_calls_plain_http_says_so(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    with pytest.raises(Blocked, match="must begin with https:// or http://"):
        policy.target("ftp://example.org/")


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("https://example.org", "example.org", 443),
        ("https://Example.org:8443/a?b=c#d", "example.org", 8443),
        ("https://xn--bcher-kva.example/", "xn--bcher-kva.example", 443),
        ("https://a_b.example.org/%C3%A9", "a_b.example.org", 443),
        (f"https://{PUBLIC}/", PUBLIC, 443),
        ("https://[2606:2800:21f:cb07::1]:9000/", "2606:2800:21f:cb07::1", 9000),
        ("HTTPS://example.org?x", "example.org", 443),
    ],
)
def test_an_address_of_the_public_network_may_be_called(url: str, host: str, port: int) -> None:
    assert policy.target(url) == (host, port)
