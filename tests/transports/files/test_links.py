"""Links to files: what they are worth, to whom, and how long."""

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import pytest
from django.core.signing import Signer

from tasks_app.files import path_of
from tasks_app.limits import strangers
from tests.conftest import Person, Server
from tests.support.chapters.files import files_of
from tests.support.hand import Hand
from tests.transports.files.links import BIG, call, fetched, link, refused

pytestmark = pytest.mark.storage


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


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("kind", ["memory", "folder"])
def test_a_link_expires_and_a_new_answer_brings_a_new_one(
    service: None, owner: Person, settings: Any, hand: Hand, tmp_path: Path, kind: str
) -> None:
    backend = {"memory": "InMemoryStorage", "folder": "FileSystemStorage"}[kind]
    options = {"location": str(tmp_path)} if kind == "folder" else {}
    settings.STORAGES |= {"files": {"BACKEND": f"django.core.files.storage.{backend}", "OPTIONS": options}}
    settings.A2A_PUBLIC_URL = "https://desk.example.org/a2a"
    settings.A2A_FILE_URL_SECONDS = 100
    hand.time = datetime(2026, 11, 21, 12, 0, 10, tzinfo=UTC)

    async def told() -> str:
        sent = call(BIG)
        sent["params"]["message"]["messageId"] = "the same"
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        _, body = await fetched("POST", "/jsonrpc", json.dumps(sent).encode(), **headers)
        url = files_of(json.loads(body)["result"]["task"]["artifacts"])[0]["url"]
        assert url.startswith("https://desk.example.org/a2a/files/20261121-")
        return str(url.removeprefix("https://desk.example.org/a2a"))

    path = asyncio.run(told())
    assert asyncio.run(fetched("GET", path)) == (200, BIG)
    hand.on(seconds=30)
    assert asyncio.run(told()) == path
    hand.on(seconds=20)
    assert asyncio.run(fetched("GET", path)) == (200, BIG)
    hand.on(seconds=50)
    status, body = asyncio.run(fetched("GET", path))
    assert (status, "expired" in json.loads(body)["error"]) == (403, True)
    fresh = asyncio.run(told())
    assert fresh.partition("?")[0] == path.partition("?")[0]
    assert asyncio.run(fetched("GET", fresh)) == (200, BIG)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("end", "first"), [("", 200), ("x", 403)], ids=["right", "wrong"])
def test_downloads_count_among_the_calls_of_their_address(
    service: None, owner: Person, settings: Any, end: str, first: int
) -> None:
    headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    _, body = asyncio.run(fetched("POST", "/jsonrpc", json.dumps(call(BIG)).encode(), **headers))
    place = urlsplit(files_of(json.loads(body)["result"]["task"]["artifacts"])[0]["url"])
    settings.A2A_ADDRESS_CALLS = 3
    strangers.calls.clear()
    path = f"{place.path}?{place.query}{end}"
    assert [asyncio.run(fetched("GET", path))[0] for _ in range(5)] == [first] * 3 + [429] * 2
