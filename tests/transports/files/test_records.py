"""Exchanges with files: digests in place of bytes."""

import asyncio
import hashlib
import json
from base64 import b64encode
from uuid import uuid4

import httpx
import pytest

from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.redaction import unload_files
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Exchange
from tests.conftest import PATIENCE, Person, Server
from tests.support.agents import GEO
from tests.support.chapters.files import files_of
from tests.transports.files.links import BIG, call, fetched

pytestmark = pytest.mark.storage


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
def test_a_body_without_files_is_recorded_as_it_came(body: bytes) -> None:
    assert unload_files(body) == body


@pytest.mark.parametrize("content", [b"A" * 30_001, b"A" * 30_000 + b"=", b"/\\/" * 10_000])
def test_a_file_is_taken_out_and_the_rest_stays_json(content: bytes) -> None:
    body = b'{"a":{"bytes" : "' + content + b'"},"raw":"x","b":["' + b"y" * 5_000 + b'"]}'
    found = json.loads(unload_files(body))
    assert found["a"]["uri"].startswith("digest:sha256=")
    assert (found["raw"], found["b"]) == ("x", ["y" * 5_000])


@pytest.mark.django_db(transaction=True)
def test_an_answer_with_files_is_derived_with_the_id_that_was_asked_for(service: None, owner: Person) -> None:
    async def ask() -> None:
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        wish = call(BIG) | {"id": "who asked"}
        wish["params"]["message"]["parts"][0]["mediaType"] = "application/zip"
        wish["params"]["metadata"] = {"agent": "files"}
        await fetched("POST", "/jsonrpc", json.dumps(wish).encode(), **headers)

    asyncio.run(ask())
    assert recorder.drain(PATIENCE)
    row = Exchange.objects.get(rpc_id="who asked")
    derived = json.loads(response_text(row))
    assert derived["id"] == "who asked"
    assert files_of(derived)[0]["url"].startswith("taskdesk-file:")


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
