"""The Slack front with a stand-in for Slack, a workspace, and an answer of verification that each test chooses."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import Any, NamedTuple

import pytest
from django.test import AsyncClient

from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import SlackQuestion, SlackWorkspace
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.slack import workspaces
from tasks_app.slack.attachments import Luggage
from tasks_app.slack.identity import Identity
from tasks_app.slack.questions import Turn
from tasks_app.slack.responder import Responder
from tests.conftest import PATIENCE
from tests.support.slack_api import BOT, BOT_USER, SECRET, TEAM, TOKEN, Json, Slack, signed, slack

OPERATOR = Operator("tests", COMMAND)


class Said(NamedTuple):
    """One reply of verification."""

    text: str
    final: bool = False
    task_id: str = ""


class Zone:
    """Verification: yields what a test says, and notes what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[Turn, Luggage]] = []
        self.replies: list[Said | Exception] = [Said("the answer", final=True)]
        self.before: Callable[[int], Any] = lambda number: None
        """Awaited, or called, before the reply with a number."""

    async def ask(self, turn: Turn, luggage: Luggage) -> AsyncGenerator[Said, None]:
        self.asked.append((turn, luggage))
        for number, reply in enumerate(self.replies):
            if (waiting := self.before(number)) is not None:
                await waiting
            if isinstance(reply, Exception):
                raise reply
            yield reply


class Front(NamedTuple):
    """The front of one process."""

    slack: Slack
    zone: Zone
    workspace: SlackWorkspace

    def responder(self) -> Responder:
        responder = Responder()
        responder.ask = self.zone.ask
        return responder

    async def send(self, payload: Json, headers: dict[str, str] | None = None) -> Any:
        """Send an event to the door, and return the response."""
        body = json.dumps(payload).encode()
        return await self.post(body, signed(body) | (headers or {}))

    async def post(self, body: bytes, headers: dict[str, str]) -> Any:
        others = {name: value for name, value in headers.items() if name != "Content-Type"}
        return await AsyncClient().post("/slack/events", body, content_type="application/json", headers=others)

    async def answer(self, responder: Responder | None = None) -> None:
        """Have all that is due answered."""
        async with asyncio.timeout(PATIENCE):
            await (responder or self.responder()).finish()

    def ask(self, *payloads: Json) -> None:
        """Send events, and have them answered."""

        async def story() -> None:
            for payload in payloads:
                response = await self.send(payload)
                assert response.status_code == 200, response.content
            await self.answer()

        asyncio.run(story())

    def questions(self) -> list[SlackQuestion]:
        return list(SlackQuestion.objects.order_by("pk"))


async def read(function: Callable[[], Any]) -> Any:
    return await bridge.ask(DoSlowly(function))


@pytest.fixture
def slack_settings(settings: Any) -> None:
    settings.A2A_SLACK = True
    settings.A2A_SLACK_EDIT_SECONDS = 0.05
    settings.A2A_OUTBOUND_LOOPBACK = True


@pytest.fixture
def there(settings: Any, slack_settings: None) -> Iterator[Slack]:
    """Give the stand-in for Slack."""
    with slack() as server:
        settings.A2A_SLACK_API = server.url
        yield server


def add_workspace(team_id: str = TEAM, **more: Any) -> SlackWorkspace:
    wish: dict[str, Any] = {
        "bot_token": TOKEN,
        "signing_secret": SECRET,
        "principal": "slack",
        "tenant": "home",
    }
    identity = Identity(team_id, "Taskdesk", BOT_USER, BOT)
    return workspaces.add(workspaces.NewWorkspace(**wish | more), identity, OPERATOR)


@pytest.fixture
def front(there: Slack, lanes: None) -> Front:
    """Give the front of a process, whose lanes run, but no background work."""
    return Front(there, Zone(), add_workspace())
