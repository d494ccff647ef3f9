"""A version of A2A that differs from 1.0 by its number alone, in one file: it behaves as 1.x everywhere."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.test import AsyncClient
from msgspec.structs import replace

from a2a.dialects import v1_0
from a2a.languages import DIALECTS, Languages
from tasks_app.exchanges.responses import response_text
from tests.conftest import Person
from tests.support.chapters import CHAPTERS
from tests.support.descriptions import rest_description
from tests.support.doors import StockDoor
from tests.support.exchanges import recorded
from tests.support.rest_speakers import RestSpeaker
from tests.support.rpc_speakers import NewSpeaker
from tests.support.speaker import Json, Speaker
from tests.support.story import Chapter, cast

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]

DIALECT = replace(v1_0.DIALECT, name="a2a-1.1", version="1.1")


@pytest.fixture(autouse=True)
def _spoken(speak: Callable[[Languages], None]) -> None:
    speak(Languages((DIALECT, *DIALECTS)))


@dataclass(kw_only=True)
class NewerSpeaker(NewSpeaker):
    webhook_version = "1.1"

    def is_card(self, card: Json) -> None:
        super().is_card(card)
        assert [each["protocolVersion"] for each in card["supportedInterfaces"]][:3] == ["1.1", "1.0", "0.3"]


@dataclass(kw_only=True)
class NewerRestSpeaker(RestSpeaker):
    webhook_version = "1.1"


SPEAKERS: dict[str, type[Speaker]] = {"rpc": NewerSpeaker, "rest": NewerRestSpeaker}


@pytest.mark.parametrize(
    ("speaker", "chapter"),
    [
        pytest.param(speaker, chapter, id=f"{chapter.name}-{name}")
        for name, speaker in SPEAKERS.items()
        for chapter in CHAPTERS
        if chapter.needs in {"", *speaker.traits}
    ],
)
def test_the_story_in_a_newer_version(
    owner: Person, stranger: Person, speaker: type[Speaker], chapter: Chapter
) -> None:
    asyncio.run(chapter.tell(cast(speaker, "1.1", StockDoor(), owner.key, stranger.key)))  # type: ignore[arg-type]


async def posted(key: str, wire: Any, **headers: str) -> Any:
    headers["authorization"] = f"Bearer {key}"
    return await AsyncClient().post("/jsonrpc", json.dumps(wire), content_type="application/json", headers=headers)


def test_the_refusal_of_a_stream_is_no_stream(owner: Person) -> None:
    """Only clients of 0.x read nothing but a stream."""
    for method, kind in (("SubscribeToTask", "application/json"), ("tasks/resubscribe", "text/event-stream")):
        wire = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"id": "missing"}}
        response = asyncio.run(posted(owner.key, wire, accept="text/event-stream"))
        assert (response.status_code, response["Content-Type"]) == (200, kind)
        assert response["A2A-Version"] == ("1.1" if method == "SubscribeToTask" else "0.3")


def test_its_calls_are_recorded_by_its_name(owner: Person) -> None:
    me = NewerSpeaker(door=StockDoor(), key=owner.key, version="1.1")
    task = asyncio.run(me.send("hello", agent="echo"))
    asyncio.run(me.get(task["id"]))
    _, exchange = recorded(2)
    assert (exchange.dialect, exchange.version, exchange.envelope) == ("a2a-1.1", "1.1", "jsonrpc")
    assert json.loads(response_text(exchange))["result"] == task


@pytest.mark.parametrize(("asked", "shown"), [("1.1", "1.1"), ("1.0", "1.0"), ("1.7", "1.0"), ("", "1.1, 1.0, 0.3")])
def test_cards_list_the_newer_version(asked: str, shown: str) -> None:
    response = asyncio.run(AsyncClient().get("/.well-known/agent-card.json", headers={"A2A-Version": asked}))
    assert response["A2A-Version"] == shown
    versions = [each["protocolVersion"] for each in json.loads(response.content)["supportedInterfaces"]]
    assert versions == ["1.1", "1.0", "0.3"] * 2 + ["1.0"], "WebSocket is last"


def test_its_methods_are_those_of_calls_without_a_version(owner: Person) -> None:
    for asked, language in (("", "a2a-1.1"), ("1.1", "a2a-1.1"), ("1.0", "a2a-1.0")):
        wire = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}
        response = asyncio.run(posted(owner.key, wire, **{"A2A-Version": asked}))
        methods = {method["name"]: method for method in json.loads(response.content)["result"]["methods"]}
        assert methods["SendMessage"]["tags"] == [{"name": language}]


def test_its_routes_are_described_beside_those_of_1_0() -> None:
    operation = rest_description().document["paths"]["/message:send"]["post"]
    schemas = operation["responses"]["200"]["content"]["application/a2a+json"]["schema"]["anyOf"]
    places = {schema["allOf"][0]["$ref"].rpartition("/")[2] for schema in schemas}
    assert places == {"a2a-1.1.SendMessageResponse", "a2a-1.0.SendMessageResponse"}
