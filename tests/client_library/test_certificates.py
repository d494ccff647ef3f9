"""A server with a certificate of a private authority is trusted where SSL_CERT_FILE names it, and refused elsewhere."""

import asyncio
from pathlib import Path

import pytest

from a2a.client import RPC, SOCKET, Client, ClientError, Retries
from a2a.client.errors import UntrustedServer
from a2a.types import Interface
from tests.support.tls import certificate, tls_front

CLOSED = 9
"""A port at which nothing listens: behind TLS the connection ends."""


async def refusal(url: str, binding: str) -> ClientError:
    """Return the error of a call, which is made once."""
    interface = Interface(url=url, binding=binding, version="1.0")
    async with Client("", interface=interface, token="a-key", retries=Retries(times=0)) as client:
        with pytest.raises(ClientError) as error:
            await client.get_task("t-1")
    return error.value


@pytest.mark.parametrize(("binding", "scheme"), [(RPC, "https"), (SOCKET, "wss")])
def test_a_private_authority_is_refused_with_advice(binding: str, scheme: str, tmp_path: Path) -> None:
    async def story() -> ClientError:
        async with tls_front(certificate("localhost", tmp_path), CLOSED) as port:
            return await refusal(f"{scheme}://localhost:{port}/ws", binding)

    error = asyncio.run(story())
    assert isinstance(error, UntrustedServer)
    assert "SSL_CERT_FILE" in str(error)


def test_the_advice_helps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))

    async def story() -> ClientError:
        async with tls_front(file, CLOSED) as port:
            return await refusal(f"https://localhost:{port}/jsonrpc", RPC)

    assert not isinstance(asyncio.run(story()), UntrustedServer)
