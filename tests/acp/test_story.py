"""The story in ACP: through Django's own handler, a real server and WebSocket, and told by our client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from a2a.client import ACP, Client, ServerError, Timeouts
from a2a.client.errors import InvalidParams, TaskNotFound
from a2a.client.languages.acp import LANGUAGE
from a2a.requests import CancelTask, GetTask, SendMessage
from a2a.states import TaskState
from a2a.types import Interface, Task
from tests.client_library.speaking import ClientSpeaker
from tests.conftest import NO_TLS, PATIENCE, Person, Server
from tests.support.acp_speaker import CHAPTERS as TASKS
from tests.support.acp_speaker import CODES, AcpSpeaker
from tests.support.chapters import CHAPTERS
from tests.support.doors import LiveDoor, StockDoor
from tests.support.speaker import Refused
from tests.support.story import Cast, Chapter, cast
from tests.transports.websocket.door import SocketDoor

pytestmark = pytest.mark.storage
ON_THE_HANDSHAKE = {"without_a_key_there_is_a_challenge"}
"""Chapters that a WebSocket tells at its handshake, before any call."""
ABOUT_THE_WIRE = {"what_is_not_offered_is_refused_with_its_code", *ON_THE_HANDSHAKE}
"""Chapters that send what no value of the client says."""


def chapters(*without: str) -> list[Any]:
    names = TASKS - {*without}
    return [pytest.param(one, id=one.name) for one in CHAPTERS if one.name in names]


def test_every_named_chapter_exists() -> None:
    assert {chapter.name for chapter in CHAPTERS} >= TASKS


@pytest.mark.requirement("ACP-06", "ACP-09")
@pytest.mark.parametrize("chapter", chapters())
def test_a_live_server_tells_each_chapter_on_tasks(server: Server, chapter: Chapter) -> None:
    asyncio.run(chapter.tell(cast(AcpSpeaker, None, LiveDoor(server.url), server.owner, server.stranger)))  # type: ignore[arg-type]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("chapter", chapters())
def test_the_handler_of_django_tells_each_chapter_on_tasks(
    service: None, owner: Person, stranger: Person, chapter: Chapter
) -> None:
    asyncio.run(chapter.tell(cast(AcpSpeaker, None, StockDoor(), owner.key, stranger.key)))  # type: ignore[arg-type]


@pytest.mark.parametrize("chapter", chapters(*ON_THE_HANDSHAKE))
def test_a_websocket_tells_each_chapter_on_tasks(server: Server, chapter: Chapter) -> None:
    asyncio.run(chapter.tell(cast(AcpSpeaker, None, SocketDoor(server.url), server.owner, server.stranger)))  # type: ignore[arg-type]


# -------------------------------------------------------------- our client


@asynccontextmanager
async def client_of(url: str, key: str) -> AsyncIterator[Client]:
    patient = Timeouts(request=PATIENCE, methods={GetTask: PATIENCE, SendMessage: PATIENCE})
    interface = Interface(url=f"{url}/jsonrpc", binding=ACP, version="1.0")
    async with (
        httpx.AsyncClient(verify=NO_TLS) as http,
        Client("", token=key, timeouts=patient, http=http, interface=interface) as client,
    ):
        yield client


@dataclass(kw_only=True)
class AcpClientSpeaker(ClientSpeaker):
    """Our client in ACP, which gives errors back with the codes of A2A."""

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        assert isinstance(self.door, LiveDoor)
        async with client_of(self.door.url, self.key) as client:
            yield client

    def is_task(self, task: Any) -> None:
        assert task["id"]

    def sending(self, text: str, **more: Any) -> Any:
        return super().sending(text, **{name: value for name, value in more.items() if name != "context"})

    def told(self, error: ServerError) -> Refused:
        refused = super().told(error)
        return Refused(refused.error | {"code": CODES[error.reason]})


@pytest.mark.requirement("ACP-20")
@pytest.mark.parametrize("chapter", chapters(*ABOUT_THE_WIRE))
def test_our_client_tells_the_story_in_acp(server: Server, chapter: Chapter) -> None:
    def speaker(key: str) -> AcpClientSpeaker:
        return AcpClientSpeaker(door=LiveDoor(server.url), key=key)

    asyncio.run(chapter.tell(Cast(speaker(server.owner), speaker(server.owner), speaker(server.stranger))))


def test_our_client_cancels_and_reads_the_states_that_acp_lacks(server: Server) -> None:
    async def tell() -> None:
        async with client_of(server.url, server.owner) as client:
            for agent, state in (("rejects", TaskState.REJECTED), ("asks-credentials", TaskState.AUTH_REQUIRED)):
                task = await client.send("hello", metadata={"agent": agent})
                assert isinstance(task, Task)
                assert task.status.state is state
            for _ in range(2):
                canceled = await client.perform(CancelTask(id=task.id, metadata={"reason": "No longer needed"}))
                assert canceled.status.state is TaskState.CANCELED
            short = await client.get_task(task.id, history_length=0)
            assert (short.history, short.status.message) == ((), None)
            with pytest.raises(TaskNotFound) as missing:
                await client.get_task("missing")
            assert (missing.value.code, missing.value.details["taskId"]) == (-40001, "missing")
            with pytest.raises(InvalidParams, match="has no place in ACP"):
                await client.send("hello", context_id="c")

    asyncio.run(tell())


@pytest.mark.requirement("ACP-20")
def test_limits_of_time_are_those_of_acp_unless_the_caller_sets_others() -> None:
    usual = LANGUAGE.seconds
    assert [Timeouts(request=60).of(kind, usual) for kind in (GetTask, SendMessage, CancelTask)] == [5.0, 30.0, 60]
    assert Timeouts(methods={GetTask: 9.0}).of(GetTask, usual) == 9.0


def test_a_message_without_an_id_is_not_sent_twice() -> None:
    assert LANGUAGE.has_message_ids is False
