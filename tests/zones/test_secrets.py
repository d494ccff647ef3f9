"""The token of a bot is in no row, no line of the log and no answer, whatever becomes of its call."""

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import orjson
import pytest
from django.apps import apps
from django.db.models import Model

from tasks_app.exchanges.recording import recorder
from tests.conftest import PATIENCE, Person, Server, person, until
from tests.support.doors import Door, LiveDoor
from tests.transports.websocket.door import SocketDoor
from tests.zones.carriers import zone

pytestmark = pytest.mark.storage
CANARY = "xoxb-4711-canary-of-a-bot"
PLAIN = "a token without any form of its own"


def call(token: str, method: str = "execute_task", **params: Any) -> bytes:
    wire = {"channel": "C1", "text": "hello", "bot_token": token} | params
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": wire}).encode()


def bodies(token: str) -> dict[str, bytes]:
    """Return calls with every outcome."""
    return {
        "a result": call(token, agent="keeps-token"),
        "accepted": call(token, wait=False),
        "an agent that fails": call(token, agent="raises"),
        "an agent that is too slow": call(token, agent="sleeper"),
        "an unknown agent": call(token, agent="nobody"),
        "wrong params": call(token, channel=7),
        "a token of another type": call(token, bot_token={"value": token}),
        "an unknown method": call(token, "execute_nothing"),
        "a language that is not for it": call(token, "SendMessage"),
        "no id": call(token).replace(b'"id": 1, ', b""),
        "a batch": b"[" + call(token) + b"," + call(token, agent="nobody") + b"]",
        "not JSON": call(token)[:-3],
        "not JSON at the token": call(token).replace(b'"bot_token": ', b'"bot_token" '),
        "two in one": call(token) + call(token),
    }


def rows_of(read: Callable[[type[Model]], Iterable[Any]]) -> str:
    """Return all rows of the database as one text."""
    return "\n".join(str(row) for model in apps.get_models() for row in read(model))


def check(token: str, answers: list[bytes], stored: str, log: str) -> None:
    """Check that the agent has got the token, and that it is nowhere else."""
    assert f"{len(token)} characters, and 0 of another".encode() in b"".join(answers)
    assert "C1" in stored
    places = {"answers": b"\n".join(answers).decode(), "rows": stored, "log": log}
    for place, text in places.items():
        assert [line for line in text.splitlines() if token in line] == [], place


@pytest.mark.django_db(transaction=True)
@pytest.mark.requirement("ZONE-10", "ZONE-21")
@pytest.mark.parametrize("kind", ["in-process", "https", "queue", "agentcore"])
@pytest.mark.parametrize("token", [CANARY, PLAIN], ids=["of a form that is known", "of no form"])
def test_a_token_is_stored_and_logged_nowhere_whatever_carries_it(
    service: None,
    owner: Person,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kind: str,
    token: str,
) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = settings.DEBUG = True
    caplog.set_level("DEBUG")
    weak = person("weak", "home", "tasks:read")
    answers = []
    with zone(kind, owner.key, monkeypatch) as open_carrier:
        for key in (owner.key, weak.key, "nobody's"):
            for name, body in bodies(token).items():
                found = asyncio.run(open_carrier(key).carry(body))
                answers.append(found)
                assert orjson.loads(found), name
    assert recorder.drain(PATIENCE)
    check(token, answers, rows_of(lambda model: model._default_manager.values_list()), caplog.text)


@pytest.mark.requirement("ZONE-10", "ZONE-21")
@pytest.mark.parametrize("kind", [LiveDoor, SocketDoor], ids=["HTTP", "WebSocket"])
def test_a_token_is_stored_and_logged_nowhere_by_a_server(server: Server, kind: type[LiveDoor]) -> None:
    token = f"{PLAIN} for {kind.__name__}"
    sendable = bodies(token)
    if kind is SocketDoor:
        # Its client reads what it sends as JSON.
        sendable = {name: body for name, body in sendable.items() if not name.startswith(("not JSON", "two", "no id"))}
    answers = [asyncio.run(post(kind(server.url), server.owner, body)) for body in sendable.values()]
    asked = "select count(*) from tasks_app_exchange where method = 'execute_nothing'"
    until(lambda: server.rows(asked) != [(0,)], "the calls are recorded")
    stored = rows_of(lambda model: server.rows(f'select * from "{model._meta.db_table}"'))  # noqa: S608  # our tables
    check(token, answers, stored, server.log.read_text(errors="replace"))


async def post(door: Door, key: str, body: bytes) -> bytes:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with asyncio.timeout(PATIENCE), door.ask("POST", "/jsonrpc", body, headers) as reply:
        return b"".join([chunk async for chunk in reply.chunks])
