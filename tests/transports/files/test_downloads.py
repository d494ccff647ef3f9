"""Downloads: an attachment that may do nothing, whole or in ranges."""

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from tasks_app.files import path_of
from tests.conftest import Person, Server, until
from tests.support.chapters.files import files_of
from tests.support.doors import StockDoor
from tests.transports.files.links import BIG, call, fetched, link, refused

pytestmark = pytest.mark.storage


def test_a_download_is_an_attachment_that_may_do_nothing(server: Server, client: httpx.Client) -> None:
    response = client.get(link(server, client, name="page.html", kind="text/html"))
    assert response.content == BIG
    assert response.headers["content-type"] == "text/html"
    assert response.headers["content-disposition"] == 'attachment; filename="page.html"'
    assert response.headers["content-length"] == str(len(BIG))
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert "no-store" in response.headers["cache-control"]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("../../etc/passwd", 'filename="passwd"'),
        ("..\\..\\boot.ini", 'filename="boot.ini"'),
        ("a\r\nSet-Cookie: x=1", 'filename="aSet-Cookie x=1"'),
        ('a"; filename="b.exe', 'filename="a; filename=b.exe"'),
        ("grün🙂.txt", "filename*=utf-8''gr%C3%BCn%F0%9F%99%82.txt"),
        ("\u202egpj.exe", 'filename="gpj.exe"'),
        ("..", 'filename="file"'),
        ("/", 'filename="file"'),
        ("", 'filename="file"'),
        (None, 'filename="file"'),
        (".htaccess", 'filename="htaccess"'),
        ("%2e%2e%2fx", 'filename="%2e%2e%2fx"'),
        ("x" * 5_000 + ".txt", f'filename="{"x" * 100}"'),
        ("ü" * 5_000, "filename*=utf-8''" + "%C3%BC" * 100),
    ],
)
def test_a_name_is_a_name_whatever_it_was_meant_to_be(
    server: Server, client: httpx.Client, name: str | None, told: str
) -> None:
    response = client.get(link(server, client, b"x" * 20_000, name))
    assert response.status_code == 200
    assert response.headers["content-disposition"] == f"attachment; {told}"
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("image/svg+xml", "image/svg+xml"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8"),
        ("text/html\r\nSet-Cookie: x=1", "application/octet-stream"),
        ("text/html; a=b; c=d", "application/octet-stream"),
        ("é/é", "application/octet-stream"),
        ("x" * 5_000 + "/y", "application/octet-stream"),
        ("nonsense", "application/octet-stream"),
        ("", "application/octet-stream"),
        (None, "application/octet-stream"),
    ],
)
def test_a_media_type_that_may_not_stand_in_a_header_is_that_of_any_bytes(
    server: Server, client: httpx.Client, kind: str | None, told: str
) -> None:
    response = client.get(link(server, client, b"x" * 20_000, "x", kind))
    assert (response.status_code, response.headers["content-type"]) == (200, told)


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1),
        ("bytes=5-", 5, len(BIG)),
        ("bytes=10-299999", 10, len(BIG)),
        ("bytes=-7", -7, len(BIG)),
        ("bytes=1-99999999999", 1, len(BIG)),
        (f"bytes=-{10**17}", 0, len(BIG)),
        ("bytes=5000-5999", 5000, 6000),
    ],
)
def test_a_range_is_what_was_asked_for(server: Server, client: httpx.Client, asked: str, start: int, end: int) -> None:
    response = client.get(link(server, client), headers={"Range": asked})
    assert response.content == BIG[start:end]
    if len(response.content) == len(BIG):
        assert (response.status_code, "content-range" in response.headers) == (200, False)
    else:
        first = len(BIG) + start if start < 0 else start
        assert response.status_code == 206
        assert response.headers["content-range"] == f"bytes {first}-{end - 1}/{len(BIG)}"


def test_a_range_that_is_not_there_and_one_that_is_none(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    for asked in ("bytes=300000-", "bytes=9-3", "bytes=-0"):
        response = client.get(path, headers={"Range": asked})
        refused(response, 416, "300000 bytes")
        assert response.headers["content-range"] == "bytes */300000"
    for asked in ("bytes=", "bytes=-", "bytes=0-1,5-6", "lines=1-2", "bytes=a-b", "bytes=" + "9" * 30 + "-"):
        assert client.get(path, headers={"Range": asked}).status_code == 200


def test_a_range_of_another_version_is_the_whole_file(server: Server, client: httpx.Client) -> None:
    for version in ('"v1"', 'W/"v1"', "Thu, 01 Jan 1970 00:00:00 GMT"):
        response = client.get(link(server, client), headers={"Range": "bytes=5-9", "If-Range": version})
        assert (response.status_code, response.content) == (200, BIG)


def test_only_get_and_head_are_served(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    for asked in ({}, {"Range": "bytes=0-9"}, {"Range": "bytes=300000-"}):
        head = client.head(path, headers=asked)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(BIG)))
        assert "content-range" not in head.headers
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        response = client.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


def test_bytes_that_are_not_there_are_a_server_that_cannot_answer_now(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    (server.log.parent / "files" / path_of(path.split("/")[2])).unlink()
    refused(client.get(path), 503, "try again")


@pytest.mark.django_db(transaction=True)
def test_a_client_that_leaves_in_the_middle_closes_the_file(
    service: None, owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from tasks_app.transports import files as door

    settings.STORAGES |= {
        "files": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(tmp_path)}}
    }
    monkeypatch.setattr(door, "CHUNK", 1_000)
    opened: list[Any] = []
    original = door.Reading

    def watched(file: Any, start: int, end: int) -> door.Reading:
        opened.append(file)
        return original(file, start, end)

    monkeypatch.setattr(door, "Reading", watched)

    async def leave() -> None:
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        _, body = await fetched("POST", "/jsonrpc", json.dumps(call(BIG)).encode(), **headers)
        place = urlsplit(files_of(json.loads(body)["result"]["task"])[0]["url"])
        async with StockDoor().ask("GET", f"{place.path}?{place.query}", b"", {}) as reply:
            assert await anext(reply.chunks) == BIG[:1_000]

    asyncio.run(leave())
    (file,) = opened
    until(lambda: file.closed, "a thread of the door closes the file")
