"""The token of a bot is in no row, no line of the log and no answer, whatever becomes of its call."""

import asyncio
import json
from typing import Any

import orjson
import pytest
from django.apps import apps

from a2a.agents import agent
from a2a.run import Run
from tasks_app.exchanges.recording import recorder
from tasks_app.zones.in_process import answer
from tests.conftest import PATIENCE, Person, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
CANARY = "xoxb-4711-canary-of-a-bot"
PLAIN = "a token without any form of its own"


@agent
async def keeps_token(run: Run) -> str:
    """Says how long its token is."""
    return f"{len(await run.secret('bot_token'))} characters, and {len(await run.secret('other'))} of another"


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


def rows() -> str:
    """Return all rows of the database as one text."""
    texts = []
    for model in apps.get_models():
        texts += [str(values) for values in model._default_manager.values_list()]
    return "\n".join(texts)


@pytest.mark.requirement("ZONE-21")
@pytest.mark.parametrize("token", [CANARY, PLAIN], ids=["of a form that is known", "of no form"])
def test_a_token_is_stored_and_logged_nowhere(owner: Person, caplog: pytest.LogCaptureFixture, token: str) -> None:
    caplog.set_level("DEBUG")
    weak = person("weak", "home", "tasks:read")
    answers = []
    for key in (owner.key, weak.key, "nobody's"):
        for name, body in bodies(token).items():
            found = asyncio.run(answer(body, key, "http"))
            answers.append(found)
            assert orjson.loads(found), name
    assert recorder.drain(PATIENCE)
    assert token.encode() not in b"".join(answers)
    assert f"{len(token)} characters, and 0 of another".encode() in b"".join(answers)
    stored = rows()
    assert "C1" in stored
    assert [line for line in stored.splitlines() if token in line] == []
    assert [line for line in caplog.text.splitlines() if token in line] == []
