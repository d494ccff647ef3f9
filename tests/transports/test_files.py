"""Downloads: links, what they are worth, and what a browser is told of files by strangers."""

import asyncio
import hashlib
import json
import os
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit
from uuid import uuid4

import httpx
import pytest
from django.core.signing import Signer

from tasks_app import clock
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.redaction import without_files
from tasks_app.exchanges.responses import response_text
from tasks_app.files import path_of
from tasks_app.models import Exchange
from tests.conftest import NO_TLS, PATIENCE, Person, Server, until
from tests.support.agents import GEO
from tests.support.chapters import files_of
from tests.support.story import StockDoor

pytestmark = pytest.mark.storage

BIG = os.urandom(300_000)


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=20, verify=NO_TLS) as client:
        yield client


def call(content: bytes, name: Any = "a.bin", kind: Any = "application/zip") -> dict[str, Any]:
    part = {"raw": b64encode(content).decode(), "filename": name, "mediaType": kind}
    said = {"messageId": str(uuid4()), "role": "ROLE_USER", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": said}}


def link(server: Server, client: httpx.Client, content: bytes = BIG, name: Any = "a.bin", kind: Any = "a/b") -> str:
    """The path and query of a file that was sent."""
    key = {"Authorization": f"Bearer {server.owner}"}
    answer = client.post("/jsonrpc", json=call(content, name, kind), headers=key).json()
    place = urlsplit(files_of(answer["result"]["task"]["artifacts"])[0]["url"])
    assert f"{place.scheme}://{place.netloc}" == server.url
    return f"{place.path}?{place.query}"


def refused(response: httpx.Response, status: int, words: str) -> None:
    assert response.status_code == status
    assert response.headers["content-type"] == "application/json"
    assert words in response.json()["error"]


# --------------------------------------------------------------- what is told


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


def test_only_get_and_head_are_served(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    for asked in ({}, {"Range": "bytes=0-9"}, {"Range": "bytes=300000-"}):
        head = client.head(path, headers=asked)
        assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(BIG)))
        assert "content-range" not in head.headers
    for method in ("POST", "PUT", "DELETE", "OPTIONS"):
        response = client.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


# ----------------------------------------------------------- what links are worth


def test_a_link_that_was_changed_is_worth_nothing(server: Server, client: httpx.Client) -> None:
    path, _, query = link(server, client).partition("?")
    given = {name: values[0] for name, values in parse_qs(query).items()}
    other = link(server, client).partition("?")[0]
    for query in (
        "",
        "until=1",
        f"signature={given['signature']}",
        f"until={int(given['until']) + 1}&signature={given['signature']}",
        f"until={given['until']}&signature={given['signature'][:-1]}",
        f"until=&signature={given['signature']}",
        f"until={given['until']}&signature=%00",
        f"until=%C3%A9&signature={quote(':é:')}",
        f"until={'9' * 5_000}&signature=x",
        f"until={given['until']}:{given['signature']}",
        f"until={given['until']}&signature={Signer(key='guessed', salt='tasks_app.files').signature('x')}",
    ):
        refused(client.get(f"{path}?{query}"), 403, "not made by this server")
    refused(
        client.get(f"{other}?until={given['until']}&signature={given['signature']}"), 403, "not made by this server"
    )
    for place in ("/files/../x/y", "/files/x/y", "/files/%2e%2e%2fsecret.key/x", "/files/" + "x" * 5_000 + "/y"):
        assert client.get(place).status_code in {403, 404}


def test_the_name_in_a_link_is_for_people(server: Server, client: httpx.Client) -> None:
    path, _, query = link(server, client).partition("?")
    response = client.get(f"{path.rpartition('/')[0]}/virus.exe?{query}")
    assert response.headers["content-disposition"] == 'attachment; filename="a.bin"'


def test_a_reference_does_not_leave_the_server_and_a_link_is_none(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    assert "taskdesk-file" not in path
    file_id = path.split("/")[2]
    ((payload,),) = server.rows(
        f"select payload from tasks_app_event where kind = 'task' and task_id = (select holder from tasks_app_file "  # noqa: S608
        f"where id = '{file_id}')"
    )
    assert "taskdesk-file:" in payload
    assert file_id.partition("-")[2] not in payload


def test_with_the_right_signature_a_file_that_is_gone_is_not_found(server: Server, client: httpx.Client) -> None:
    secret = (server.log.parent / "secret.key").read_text(encoding="ascii")
    file_id = "20260101-" + "0" * 32
    signer = Signer(key=secret, salt="tasks_app.files")
    for name, end, status in (
        (file_id, 4_000_000_000, 404),
        ("../secret.key", 4_000_000_000, 404),
        (file_id, 1, 403),
    ):
        signature = signer.signature(f"{name}.{end}")
        response = client.get(f"/files/{quote(name, safe='')}/x?until={end}&signature={signature}")
        assert response.status_code == status, response.text
        assert "error" in response.json() if response.headers["content-type"] == "application/json" else status == 404


def test_bytes_that_are_not_there_are_a_server_that_cannot_answer_now(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    (server.log.parent / "files" / path_of(path.split("/")[2])).unlink()
    refused(client.get(path), 503, "try again")


def test_files_are_for_the_user_of_the_server_alone(server: Server, client: httpx.Client) -> None:
    path = link(server, client)
    file: Path = server.log.parent / "files" / path_of(path.split("/")[2])
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert file.read_bytes() == BIG


def test_a_stranger_gets_no_link(server: Server, client: httpx.Client) -> None:
    response = client.post("/jsonrpc", json=call(BIG), headers={"Authorization": f"Bearer {server.owner}"})
    task = response.json()["result"]["task"]
    wish = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": task["id"]}}
    told = client.post("/jsonrpc", json=wish, headers={"Authorization": f"Bearer {server.stranger}"}).json()
    assert told["error"]["code"] == -32001
    assert "files" not in json.dumps(told)


def test_a_host_that_is_not_ours_is_not_in_a_link(server: Server, client: httpx.Client) -> None:
    headers = {"Authorization": f"Bearer {server.owner}", "Host": "evil.example"}
    answer = client.post("/jsonrpc", json=call(BIG), headers=headers)
    assert "evil.example" not in answer.text
    (file, _) = files_of(answer.json()["result"]["task"])
    assert client.get(file["url"]).content == BIG


# -------------------------------------------------------- in this process


async def asked(method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    async with StockDoor().ask(method, path, body, headers) as reply:
        return reply.status, b"".join([chunk async for chunk in reply.chunks])


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_link_expires_and_a_new_answer_brings_a_new_one(
    service: None, owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, kind: str
) -> None:
    backend = {"memory": "InMemoryStorage", "folder": "FileSystemStorage"}[kind]
    options = {"location": str(tmp_path)} if kind == "folder" else {}
    settings.STORAGES |= {"files": {"BACKEND": f"django.core.files.storage.{backend}", "OPTIONS": options}}
    settings.A2A_PUBLIC_URL = "https://desk.example.org/a2a"
    settings.A2A_FILE_URL_SECONDS = 100
    at = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)
    monkeypatch.setattr(clock, "now", lambda: at)

    async def told() -> str:
        sent = call(BIG)
        sent["params"]["message"]["messageId"] = "the same"
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        _, body = await asked("POST", "/jsonrpc", json.dumps(sent).encode(), **headers)
        url = files_of(json.loads(body)["result"]["task"]["artifacts"])[0]["url"]
        assert url.startswith("https://desk.example.org/a2a/files/20261121-")
        return str(url.removeprefix("https://desk.example.org/a2a"))

    def after(seconds: float) -> None:
        moment = at + timedelta(seconds=seconds)
        monkeypatch.setattr(clock, "now", lambda: moment)

    path = asyncio.run(told())
    assert asyncio.run(asked("GET", path)) == (200, BIG)
    after(30)
    assert asyncio.run(told()) == path
    after(50)
    assert asyncio.run(asked("GET", path)) == (200, BIG)
    after(100)
    status, body = asyncio.run(asked("GET", path))
    assert (status, "expired" in json.loads(body)["error"]) == (403, True)
    fresh = asyncio.run(told())
    assert fresh.partition("?")[0] == path.partition("?")[0]
    assert asyncio.run(asked("GET", fresh)) == (200, BIG)


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
    original = door._chunks

    def watched(file: Any, start: int, end: int) -> AsyncIterator[bytes]:
        opened.append(file)
        return original(file, start, end)

    monkeypatch.setattr(door, "_chunks", watched)

    async def leave() -> None:
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        _, body = await asked("POST", "/jsonrpc", json.dumps(call(BIG)).encode(), **headers)
        place = urlsplit(files_of(json.loads(body)["result"]["task"])[0]["url"])
        async with StockDoor().ask("GET", f"{place.path}?{place.query}", b"", {}) as reply:
            assert await anext(reply.chunks) == BIG[:1_000]

    asyncio.run(leave())
    (file,) = opened
    until(lambda: file.closed, "a thread of the door closes the file")


# --------------------------------------------------------------- the record


def test_the_record_of_a_call_has_the_digest_of_a_file_instead_of_its_bytes(
    server: Server, client: httpx.Client
) -> None:
    digest = f"digest:sha256={hashlib.sha256(BIG).hexdigest()};bytes={len(BIG)}"
    key = {"Authorization": f"Bearer {server.owner}"}
    new = call(BIG) | {"id": "new"}
    file = {"bytes": b64encode(BIG).decode().replace("/", "\\/"), "name": "x"}
    message = {"messageId": str(uuid4()), "role": "user", "parts": [{"kind": "file", "file": file}]}
    old = {"jsonrpc": "2.0", "id": "old", "method": "message/send", "params": {"message": message}}
    body = json.dumps(old).replace("\\\\/", "\\/")
    assert "\\/" in body
    for member, answer in (
        ("url", client.post("/jsonrpc", json=new, headers=key)),
        ("uri", client.post("/jsonrpc", content=body, headers=key | {"Content-Type": "application/json"})),
    ):
        assert "error" not in answer.json()
        (row,) = server.rows(
            "select b.request, e.request_bytes from tasks_app_exchangebody b "  # noqa: S608
            f"join tasks_app_exchange e on e.id = b.exchange_id where e.id = '{answer.headers['x-request-id']}'"
        )
        assert f'"{member}":"{digest}"' in row[0]
        assert len(row[0]) < 1_000
        assert row[1] > len(BIG)
        recorded = json.loads(row[0])
        assert recorded["id"] == answer.json()["id"]


@pytest.mark.parametrize(
    "body",
    [
        b'{"raw":"' + b"A" * 30_000,
        b'{"raw":"' + b"A" * 30_000 + b'\\"}',
        b'{"raw":"' + b"A" * 30_000 + b' "}',
        b'{"text":"\\"raw\\":\\"' + b"A" * 30_000 + b'\\""}',
        b'{"raw":"' + b"A" * 9_000 + b'","text":"' + b"x" * 30_000 + b'"}',
        b'{"raw":' * 10_000,
    ],
)
def test_what_is_no_file_is_recorded_as_it_came(body: bytes) -> None:
    assert without_files(body) == body


@pytest.mark.parametrize("content", [b"A" * 30_001, b"A" * 30_000 + b"=", b"/\\/" * 10_000])
def test_a_file_is_taken_out_and_the_rest_stays_json(content: bytes) -> None:
    body = b'{"a":{"bytes" : "' + content + b'"},"raw":"x","b":["' + b"y" * 5_000 + b'"]}'
    found = json.loads(without_files(body))
    assert found["a"]["uri"].startswith("digest:sha256=")
    assert (found["raw"], found["b"]) == ("x", ["y" * 5_000])


@pytest.mark.django_db(transaction=True)
def test_an_answer_with_files_is_derived_with_the_id_that_was_asked_for(service: None, owner: Person) -> None:
    async def ask() -> None:
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        wish = call(BIG) | {"id": "who asked"}
        wish["params"]["message"]["parts"][0]["mediaType"] = "application/zip"
        wish["params"]["metadata"] = {"agent": "files"}
        await asked("POST", "/jsonrpc", json.dumps(wish).encode(), **headers)

    asyncio.run(ask())
    assert recorder.drain(PATIENCE)
    row = Exchange.objects.get(rpc_id="who asked")
    derived = json.loads(response_text(row))
    assert derived["id"] == "who asked"
    assert files_of(derived)[0]["url"].startswith("taskdesk-file:")


# ---------------------------------------------------------------------- REST


@pytest.mark.parametrize("old", [False, True], ids=["1.0", "0.x"])
def test_over_rest_extensions_are_told_and_files_are_recorded_alike(
    server: Server, client: httpx.Client, old: bool
) -> None:
    key = {"Authorization": f"Bearer {server.owner}"}
    content = b64encode(BIG).decode()
    part = {"file": {"fileWithBytes": content, "name": "x"}} if old else {"raw": content, "filename": "x"}
    said = {"messageId": str(uuid4()), "role": "ROLE_USER", "content" if old else "parts": [part]}
    answer = client.post("/v1/message:send" if old else "/message:send", json={"message": said}, headers=key)
    assert answer.status_code == 200, answer.text
    (row,) = server.rows(
        "select b.request from tasks_app_exchangebody b "  # noqa: S608
        f"where b.exchange_id = '{answer.headers['x-request-id']}'"
    )
    assert f'"{"fileWithUri" if old else "url"}":"digest:sha256={hashlib.sha256(BIG).hexdigest()}' in row[0]
    text = {"content": [{"text": "hello"}]} if old else {"parts": [{"text": "hello"}]}
    said = {"messageId": str(uuid4()), "role": "ROLE_USER", **text}
    body = {"message": said, "metadata": {"agent": "demanding"}}
    path = "/v1/message:send" if old else "/message:send"
    missing = client.post(path, json=body, headers=key)
    assert missing.status_code == 400
    assert missing.json()["error"]["details"][0]["reason"] == "EXTENSION_SUPPORT_REQUIRED"
    asked_for = client.post(path, json=body, headers=key | {"A2A-Extensions": GEO})
    assert asked_for.status_code == 200
    assert asked_for.headers["x-a2a-extensions" if old else "a2a-extensions"] == GEO
