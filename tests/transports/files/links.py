"""Links to files of artifacts."""

import os
from base64 import b64encode
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import httpx

from tests.conftest import Server
from tests.support.chapters.files import files_of
from tests.support.doors import StockDoor

BIG = os.urandom(300_000)


def call(content: bytes, name: Any = "a.bin", kind: Any = "application/zip") -> dict[str, Any]:
    part = {"raw": b64encode(content).decode(), "filename": name, "mediaType": kind}
    said = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": said}}


def link(server: Server, client: httpx.Client, content: bytes = BIG, name: Any = "a.bin", kind: Any = "a/b") -> str:
    """Send a file; return the path and query of its link."""
    key = {"Authorization": f"Bearer {server.owner}"}
    answer = client.post("/jsonrpc", json=call(content, name, kind), headers=key).json()
    place = urlsplit(files_of(answer["result"]["task"]["artifacts"])[0]["url"])
    assert f"{place.scheme}://{place.netloc}" == server.url
    return f"{place.path}?{place.query}"


def refused(response: httpx.Response, status: int, words: str) -> None:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert words in response.json()["error"]


async def fetched(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """Ask this process; return the status and the whole body of its answer."""
    async with StockDoor().ask(method, path, body, headers) as reply:
        return reply.status, b"".join([chunk async for chunk in reply.chunks])
