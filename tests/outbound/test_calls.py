"""Calls to addresses: redirects, proxies, TLS, endless answers."""

import asyncio
import contextlib
import socket
import ssl
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from a2a.client import RPC, Client, ClientCredentials, Retries, errors
from a2a.types import Interface
from tasks_app.outbound import dialling
from tests.outbound.listener import Listener
from tests.support.receiver import Reply, receiver
from tests.support.tls import certificate, server_context


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
            async with dialling.client(seconds=2) as client:
                response = await client.post(url, content=b"{}")
            return response.status_code, listener.hits

    with receiver() as there:
        port = there.server_address[1]
        assert asyncio.run(story(f"http://hooks.internal:{port}/", there)) == (307, 0)
        assert len(there.got) == 1


@pytest.mark.parametrize(("named", "reached"), [("hooks.internal", True), ("other.internal", False)])
def test_tls_is_about_the_name_although_an_address_is_dialled(
    names: Any, settings: Any, tmp_path: Path, named: str, reached: bool
) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate(named, tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))
    with receiver() as there:
        there.socket = server_context(file).wrap_socket(there.socket, server_side=True)
        url = f"https://hooks.internal:{there.server_address[1]}/"

        async def story() -> int:
            async with dialling.client(seconds=2, verify=trusted) as client:
                return (await client.post(url, content=b"{}")).status_code

        if reached:
            assert asyncio.run(story()) == 204
        else:
            with pytest.raises(httpx.ConnectError):
                asyncio.run(story())
        assert len(there.got) == int(reached)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_an_answer_without_end_is_read_up_to_a_limit(names: Any, settings: Any, tmp_path: Path, scheme: str) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate("hooks.internal", tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))
    context = server_context(file)

    async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while True:
                writer.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
                await writer.drain()
                # Over TLS drain() returns at once after a reset. The sleep lets the loop notice the reset.
                await asyncio.sleep(0)

    async def story() -> None:
        there = await asyncio.start_server(endless, "127.0.0.1", 0, ssl=context if scheme == "https" else None)
        url = f"{scheme}://hooks.internal:{there.sockets[0].getsockname()[1]}/"
        async with asyncio.timeout(20), dialling.client(seconds=10, verify=trusted) as client:
            with pytest.raises(httpx.ReadError, match="too many bytes"):
                await client.post(url, content=b"{}")
        there.close()

    asyncio.run(story())


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_interim_answers_have_a_limit_of_their_own(names: Any, settings: Any, tmp_path: Path, scheme: str) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate("hooks.internal", tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))
    context = server_context(file)
    hint, head = b"HTTP/1.1 103 Early Hints\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 200000\r\n\r\n"

    async def hinting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
        with contextlib.suppress(OSError):
            writer.write(hint * (3 if path == b"/few" else 5_000) + head + b"x" * 200_000)
            await writer.drain()
        writer.close()

    async def story() -> None:
        there = await asyncio.start_server(hinting, "127.0.0.1", 0, ssl=context if scheme == "https" else None)
        url = f"{scheme}://hooks.internal:{there.sockets[0].getsockname()[1]}"
        async with dialling.client(seconds=10, verify=trusted, most_read=1_000_000) as client:
            assert len((await client.get(f"{url}/few")).content) == 200_000
            with pytest.raises(httpx.ReadError, match="too many bytes"):
                await client.get(f"{url}/many")
        there.close()

    asyncio.run(story())


def test_the_cookies_of_a_receiver_are_sent_to_no_other(names: Any, settings: Any) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["one.hooks.internal", "two.hooks.internal"]
    names([["127.0.0.1"]])

    async def story(port: int) -> None:
        async with dialling.client(seconds=10) as client:
            for name in ("one", "two"):
                await client.post(f"http://{name}.hooks.internal:{port}/", content=b"{}")
            assert not client.cookies

    with receiver() as there:
        there.default = Reply(204, {"Set-Cookie": "planted=1; Domain=.hooks.internal; Path=/"})
        asyncio.run(story(there.server_address[1]))
        assert ["cookie" in got.headers for got in there.got] == [False, False]


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"], ids=["head", "body"])
def test_a_broken_record_of_tls_is_a_lost_connection(
    names: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    settings.A2A_OUTBOUND_HOSTS = ["hooks.internal"]
    names([["127.0.0.1"]])
    file = certificate("hooks.internal", tmp_path)
    trusted = ssl.create_default_context(cafile=str(file))

    def breaking(listener: socket.socket) -> None:
        plain, _ = listener.accept()
        with plain, server_context(file).wrap_socket(plain.dup(), server_side=True) as secure:
            secure.recv(65_536)
            secure.sendall(beginning)
            plain.sendall(b"no record of TLS" * 10)
            while plain.recv(
                65_536
            ):  # A reset, because something was left unread, would come before the broken record.
                pass

    async def story(url: str) -> None:
        async with dialling.client(seconds=10, verify=trusted) as client:
            with pytest.raises(httpx.ReadError, match="TLS: WRONG_VERSION_NUMBER"):
                await client.post(url, content=b"{}")
        interface = Interface(url=url, binding=RPC, version="1.0")
        retries, http = Retries(times=0), httpx.AsyncClient(verify=trusted)
        async with http, Client(url, interface=interface, http=http, retries=retries) as client_of_a2a:
            with pytest.raises(errors.ConnectionLost):
                await client_of_a2a.get_task("t")
        async with httpx.AsyncClient(verify=trusted) as http:
            with pytest.raises(errors.NoToken, match="does not answer: SSLError"):
                await ClientCredentials(url, "me", "secret", http=http).headers()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads = [threading.Thread(target=breaking, args=(listener,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        port = listener.getsockname()[1]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", port))])
        asyncio.run(story(f"https://hooks.internal:{port}/"))
        for thread in threads:
            thread.join(20)
