"""Addresses that callers choose: what must not be reached is not even connected to."""

import asyncio
import contextlib
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tasks_app.outbound import dialling as outbound
from tasks_app.outbound.dialling import Blocked, Unknown
from tests.conftest import ROOT
from tests.support.receiver import Reply, receiver

PUBLIC = "93.184.215.14"


class Listener:
    """Counts who connects, on both loopbacks."""

    def __init__(self) -> None:
        self.hits = 0
        self.port = 0

    async def __aenter__(self) -> "Listener":
        self.four = await asyncio.start_server(self.hit, "127.0.0.1", 0)
        self.port = self.four.sockets[0].getsockname()[1]
        self.six = await asyncio.start_server(self.hit, "::1", self.port) if socket.has_ipv6 else None
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.sleep(0)
        for server in (self.four, self.six):
            if server:
                server.close()

    async def hit(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.hits += 1
        writer.close()


@pytest.fixture(autouse=True)
def production(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = False
    settings.A2A_OUTBOUND_HOSTS = []


HOSTILE = [
    # Loopback, in numbers of one to four parts, decimal, octal and hexadecimal, and by name.
    *"127.0.0.1 127.1 127.0.1 2130706433 0x7f000001 0x7f.0.0.1 0x7f.1 0177.0.0.1 017700000001".split(),
    *"127.000.000.001 127.255.255.254 0.0.0.0 0".split(),
    *"localhost LOCALHOST localhost. 127.0.0.1. localhost.localdomain.".split(),
    # IPv6: loopback, addresses that carry one of IPv4, link-local, site-local, unique local and multicast.
    *"[::1] [::] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1] [::ffff:7f00:1] [::127.0.0.1] [64:ff9b::7f00:1]".split(),
    *"[64:ff9b:1::7f00:1] [2002:7f00:1::] [2001:0:7f00:1::] [fe80::1] [fe80::1%25lo] [fe80::1%lo]".split(),
    *"[::1%25lo] [fec0::1] [fd00:ec2::254] [ff02::1]".split(),
    # IPv4: networks of one's own, metadata of clouds, documentation, multicast, reserved.
    *"10.0.0.1 172.16.0.1 192.168.0.1 169.254.169.254 100.64.0.1 100.100.100.200 192.0.0.192 192.0.2.1".split(),
    *"198.18.0.1 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255".split(),
    *"168.63.129.16 192.88.99.1".split(),
    # Digits, dots and letters of other scripts.
    "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
    "127\u30020\u30020\u30021",
    "\uff11\uff12\uff17.0.0.1",
    "\u0661\u0662\u0667.0.0.1",
    "\uff4c\uff4f\uff43\uff41\uff4c\uff48\uff4f\uff53\uff54",
    # Two readers may see two hosts.
    *"example.org@127.0.0.1 127.0.0.1@example.org user:pass@127.0.0.1 127.0.0.1\\@example.org".split(),
    *"example.org\\.127.0.0.1 127.0.0.1%00example.org %31%32%37.0.0.1 127.0.0.1#@example.org".split(),
    *"127.0.0.1?@example.org".split(),
    "127.0.0.1 ",
    "127.0.0.1\t",
    # No host at all.
    "",
    *". .. - a..b [127.0.0.1] ::1 [::1 1.2.3.4.5 0x".split(),
    "a" * 64,
    # IPv6 outside the networks that are given out.
    *"[::ffff:0:7f00:1] [::1:2] [1::1] [200::1] [4000::1] [5f00::1] [fe00::1] [64:ff9b:2::1] [3fff::1]".split(),
]


@pytest.mark.parametrize("host", HOSTILE, ids=[f"{n}:{ascii(host)[:40]}" for n, host in enumerate(HOSTILE)])
@pytest.mark.parametrize("scheme", ["https", "http"])
def test_a_hostile_address_is_refused_and_nothing_is_connected_to(
    host: str, scheme: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Plain HTTP may be used by this name alone: what stops the rest must be the address.
    settings.A2A_OUTBOUND_HOSTS = ["only.this.one"]

    async def story() -> int:
        async with Listener() as listener:
            port = f":{listener.port}" if "@" not in host[-12:] else ""
            url = f"{scheme}://{host}{port}/hook"
            with pytest.raises((Blocked, Unknown)):
                await outbound.check(url)
            async with outbound.client(seconds=2) as client:
                # And the client alone, whose reader of addresses may see another host than ours.
                with pytest.raises((Blocked, Unknown, httpx.InvalidURL, httpx.TransportError, ValueError)):
                    await client.post(url, content=b"{}")
            await asyncio.sleep(0.01)
            return listener.hits

    resolved = outbound.lookup

    async def lookup(name: str, at: int, lookups: outbound.Lookups) -> outbound.Answers:
        # Offline: names that are not of this machine do not exist.
        if name in {"example.org", "a", "-"}:
            raise OSError
        return await resolved(name, at, lookups)

    monkeypatch.setattr(outbound, "lookup", lookup)
    assert asyncio.run(story()) == 0


@pytest.mark.parametrize(
    ("url", "word"),
    [
        ("ftp://example.org/", "https"),
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
        ("", "https"),
    ],
)
def test_an_address_that_may_not_be_says_why(url: str, word: str) -> None:
    with pytest.raises(Blocked) as told:
        outbound.target(url)
    assert word in str(told.value)


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
    assert outbound.target(url) == (host, port)


def answers(*numbers: str) -> outbound.Answers:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 0)) for number in numbers]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[list[str]]], list[str]]:
    """Sets what a name stands for, look by look; the last answer stays. Gives the names that were looked up."""
    asked: list[str] = []

    def set_to(looks: list[list[str]]) -> list[str]:
        async def lookup(host: str, port: int, _: Any) -> outbound.Answers:
            asked.append(host)
            return answers(*(looks.pop(0) if len(looks) > 1 else looks[0]))

        monkeypatch.setattr(outbound, "lookup", lookup)
        return asked

    return set_to


def test_a_name_that_changes_its_mind_between_check_and_call_reaches_nothing(names: Any) -> None:
    async def story() -> int:
        async with Listener() as listener:
            url = f"https://rebinds.example:{listener.port}/"
            asked = names([[PUBLIC], ["127.0.0.1"]])
            await outbound.check(url)
            async with outbound.client(seconds=2) as client:
                with pytest.raises(Blocked):
                    await client.post(url)
            assert asked == ["rebinds.example"] * 2
            return listener.hits

    assert asyncio.run(story()) == 0


def test_the_answer_that_was_checked_is_the_one_that_is_dialled(names: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    dialled = []

    async def connect(self: Any, host: str, port: int, *_: Any) -> Any:
        dialled.append((host, port))
        raise outbound.httpcore.ConnectError

    asked = names([[PUBLIC, "2606:2800:21f:cb07::1"], ["127.0.0.1"]])
    monkeypatch.setattr(outbound.httpcore.AnyIOBackend, "connect_tcp", connect)

    async def story() -> None:
        async with outbound.client(seconds=2) as client:
            with pytest.raises(httpx.ConnectError):
                await client.post("https://twice.example/")

    asyncio.run(story())
    # Looked up once, and every answer of that look tried.
    assert (asked, dialled) == (["twice.example"], [(PUBLIC, 443), ("2606:2800:21f:cb07::1", 443)])


@pytest.mark.parametrize("bad", ["127.0.0.1", "::1", "fe80::1%eth0", "::ffff:10.0.0.1", "169.254.169.254", "nonsense"])
def test_one_answer_that_is_not_allowed_is_enough(names: Any, bad: str) -> None:
    names([[PUBLIC, bad]])
    with pytest.raises(Blocked):
        asyncio.run(outbound.check("https://mixed.example/"))
    names([[bad, PUBLIC]])
    with pytest.raises(Blocked):
        asyncio.run(outbound.check("https://mixed.example/"))


def test_a_redirect_to_loopback_is_not_followed_and_no_proxy_is_asked(
    names: Any, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])

    async def story(url: str, there: Any) -> tuple[int, int]:
        async with Listener() as listener:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{listener.port}")
            there.default = Reply(307, {"Location": f"http://127.0.0.1:{listener.port}/"})
            async with outbound.client(seconds=2) as client:
                response = await client.post(url, content=b"{}")
            return response.status_code, listener.hits

    with receiver() as there:
        port = there.server_address[1]
        assert asyncio.run(story(f"http://hooks.internal:{port}/", there)) == (307, 0)
        assert len(there.got) == 1


def test_operators_open_names_and_networks(names: Any, settings: Any) -> None:
    names([["10.1.2.3"]])
    settings.A2A_OUTBOUND_HOSTS = ["Hooks.Internal", "10.1.0.0/16", "192.168.7.7", "4000::/16"]
    assert outbound.target("http://hooks.internal:81/") == ("hooks.internal", 81)
    asyncio.run(outbound.check("http://hooks.internal/"))
    asyncio.run(outbound.check("https://else.internal/"))
    assert outbound.target("http://192.168.7.7/") == ("192.168.7.7", 80)
    with pytest.raises(Blocked):
        outbound.target("http://else.internal/")
    asyncio.run(outbound.check("https://[4000::1]/"))
    names([["10.2.2.3"]])
    with pytest.raises(Blocked):
        asyncio.run(outbound.check("https://else.internal/"))


def test_a_name_that_leads_nowhere_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(host: str, port: int, _: Any) -> outbound.Answers:
        raise socket.gaierror

    async def silence(host: str, port: int, _: Any) -> outbound.Answers:
        await asyncio.Event().wait()
        return []

    monkeypatch.setattr(outbound, "LOOKUP_SECONDS", 0.05)
    for lookup in (nothing, silence):
        monkeypatch.setattr(outbound, "lookup", lookup)
        with pytest.raises(Unknown):
            asyncio.run(outbound.check("https://nowhere.example/"))


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Names of hangs.example have a name server that does not answer; counts who asks it."""
    asked, over, real = threading.Semaphore(0), threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *more: Any, **named: Any) -> Any:
        if host.endswith("hangs.example"):
            asked.release()
            over.wait(60)
            raise socket.gaierror
        return real(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    over.set()


@pytest.mark.parametrize("loops", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_names_that_hang_hold_up_no_other_name(
    loops: Callable[[], asyncio.AbstractEventLoop], hanging: threading.Semaphore, settings: Any
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True

    async def story() -> None:
        slow = [
            asyncio.create_task(outbound.resolve(f"{number}.hangs.example", 443, pool))
            for pool in (outbound.registering, outbound.sending)
            for number in range(40)
        ]
        for _ in slow:
            assert await asyncio.to_thread(hanging.acquire, timeout=20)
        # While all of them wait.
        await outbound.check("https://localhost:1024/")
        assert await outbound.resolve("localhost", 443, outbound.sending)
        assert not any(task.done() for task in slow)
        for task in slow:
            task.cancel()

    with asyncio.Runner(loop_factory=loops) as runner:
        runner.run(story())


def test_there_is_a_bound_to_names_that_are_looked_up_and_none_to_addresses(hanging: threading.Semaphore) -> None:
    lookups = outbound.Lookups("few", at_once=2)

    async def story() -> None:
        slow = [asyncio.create_task(outbound.resolve("hangs.example", 443, lookups)) for _ in range(2)]
        for _ in slow:
            assert await asyncio.to_thread(hanging.acquire, timeout=20)
        with pytest.raises(Unknown):
            await outbound.resolve("localhost", 443, lookups)
        assert await outbound.resolve(PUBLIC, 443, lookups) == [PUBLIC]
        for task in slow:
            task.cancel()

    asyncio.run(story())


_LEAVES = """
import asyncio, socket, threading, time
asked = threading.Event()

def getaddrinfo(*_, **__):
    asked.set()
    time.sleep(300)

socket.getaddrinfo = getaddrinfo
from tasks_app.outbound import dialling as outbound
outbound.LOOKUP_SECONDS = 0.1
try:
    asyncio.run(outbound.check("https://hangs.example/"))
except outbound.Unknown:
    assert asked.is_set()
    print("leaves")
"""


def test_a_process_ends_although_a_name_hangs(tmp_path: Path) -> None:
    environment = os.environ | {"DATA_DIR": str(tmp_path)}
    command = [sys.executable, "manage.py", "shell", "--no-imports", "-c", _LEAVES]
    done = subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=60)
    assert "leaves" in done.stdout


def certificate(name: str, folder: Path) -> Path:
    """A key and a certificate of that name, in one file."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / f"{name}.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.mark.parametrize(("named", "reached"), [("hooks.internal", True), ("other.internal", False)])
def test_tls_is_about_the_name_although_an_address_is_dialled(
    names: Any, settings: Any, tmp_path: Path, named: str, reached: bool
) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate(named, tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))
    with receiver() as there:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        there.socket = context.wrap_socket(there.socket, server_side=True)
        url = f"https://hooks.internal:{there.server_address[1]}/"

        async def story() -> int:
            async with outbound.client(seconds=2, verify=trusted) as client:
                return (await client.post(url, content=b"{}")).status_code

        if reached:
            assert asyncio.run(story()) == 204
        else:
            with pytest.raises(httpx.ConnectError):
                asyncio.run(story())
        assert len(there.got) == int(reached)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_of_an_answer_that_does_not_end_only_so_much_is_read(
    names: Any, settings: Any, tmp_path: Path, scheme: str
) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate("hooks.internal", tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
                await writer.drain()
                # Over TLS drain() returns at once on a connection that was reset, and the loop never learned of it.
                await asyncio.sleep(0)

    async def story() -> None:
        there = await asyncio.start_server(endless, "127.0.0.1", 0, ssl=context if scheme == "https" else None)
        url = f"{scheme}://hooks.internal:{there.sockets[0].getsockname()[1]}/"
        async with asyncio.timeout(20), outbound.client(seconds=10, verify=trusted) as client:
            with pytest.raises(httpx.ReadError, match="131072 bytes"):
                await client.post(url, content=b"{}")
        there.close()

    asyncio.run(story())
