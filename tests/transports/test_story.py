"""The story, through each door in each dialect; and the cards, which are public."""

import asyncio
import json
from typing import Any

import pytest

from tests.conftest import Person, Server
from tests.support.adr_speaker import AdrSpeaker
from tests.support.chapters import CHAPTERS
from tests.support.doors import Door, LiveDoor, StockDoor
from tests.support.rest_speakers import KindRestSpeaker, OldRestSpeaker, RestSpeaker
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.sparc_speaker import SparcSpeaker
from tests.support.speaker import Speaker
from tests.support.story import Chapter, cast
from tests.support.vapora_speaker import VaporaSpeaker
from tests.support.zone_speaker import ZoneSpeaker

SPEAKERS: dict[str, tuple[type[Speaker], str | None]] = {
    "1.0": (NewSpeaker, "1.0"),
    "1.0 without a header": (NewSpeaker, None),
    "0.3": (OldSpeaker, None),
    "0.2": (OldSpeaker, "0.2"),
    "1.0 over REST": (RestSpeaker, "1.0"),
    "0.3 over REST, as protobuf": (OldRestSpeaker, None),
    "0.3 over REST, with kind": (KindRestSpeaker, "0.3"),
    "SPARC": (SparcSpeaker, None),
    "VAPORA": (VaporaSpeaker, None),
    "zones": (ZoneSpeaker, None),
    "ADR-002": (AdrSpeaker, None),
}
WITH_REASONS: tuple[type[Speaker], ...] = (ZoneSpeaker, AdrSpeaker)
"""Speakers that name each chapter that they cannot tell. Others tell all but those of traits that they lack."""
STORY: list[Any] = [
    pytest.param(speaker, chapter, id=f"{chapter.name}-{name}")
    for name, speaker in SPEAKERS.items()
    for chapter in CHAPTERS
    if chapter.suits(speaker[0])
]


@pytest.mark.parametrize("kind", WITH_REASONS)
def test_each_chapter_is_told_or_has_a_reason_why_it_is_not(kind: type[Speaker]) -> None:
    names = {chapter.name for chapter in CHAPTERS}
    assert {name for name in kind.untold if not kind.untold[name]} == set()
    assert kind.untold.keys() <= names
    assert {chapter.name for chapter in CHAPTERS if chapter.suits(kind)} == names - kind.untold.keys()


@pytest.mark.storage
@pytest.mark.parametrize(("dialect", "chapter"), STORY)
@pytest.mark.requirement("ADR-14", "ZONE-01", "SPARC-01")
def test_a_live_server_tells_each_chapter(
    server: Server, dialect: tuple[type[Speaker], str | None], chapter: Chapter
) -> None:
    asyncio.run(chapter.tell(cast(*dialect, LiveDoor(server.url), server.owner, server.stranger)))  # type: ignore[arg-type]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("dialect", "chapter"), STORY)
def test_the_handler_of_django_tells_each_chapter(
    service: None, owner: Person, stranger: Person, dialect: tuple[type[Speaker], str | None], chapter: Chapter
) -> None:
    asyncio.run(chapter.tell(cast(*dialect, StockDoor(), owner.key, stranger.key)))  # type: ignore[arg-type]


# -------------------------------------------------------------------- cards


@pytest.fixture(params=["live", "stock"])
def door(request: pytest.FixtureRequest) -> Door:
    if request.param == "live":
        return LiveDoor(request.getfixturevalue("server").url)
    return StockDoor()


def got(door: Door, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    async def ask() -> tuple[int, dict[str, str], bytes]:
        async with door.ask(method, path, b"", headers) as reply:
            return reply.status, reply.headers, b"".join([chunk async for chunk in reply.chunks])

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("path", "version", "shape"),
    [
        ("/.well-known/agent-card.json", None, {"supportedInterfaces", "protocolVersion", "url"}),
        ("/.well-known/agent-card.json", "1.0", {"supportedInterfaces"}),
        ("/.well-known/agent-card.json", "0.3", {"protocolVersion", "url"}),
        ("/.well-known/agent.json", None, {"protocolVersion", "url"}),
    ],
)
def test_a_card_has_the_shape_of_its_path_and_version(
    door: Door, path: str, version: str | None, shape: set[str]
) -> None:
    headers = {"A2A-Version": version} if version else {}
    status, told, body = got(door, path, **headers)
    card = json.loads(body)
    assert status == 200
    assert {"supportedInterfaces", "protocolVersion", "url"} & set(card) == shape
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is True
    assert {"echo", "story", "introduce"} <= {skill["id"] for skill in card["skills"]}
    assert got(door, path, **headers, **{"If-None-Match": told["etag"]})[::2] == (304, b"")
    assert b"Traceback" not in body


def test_every_agent_has_a_card_of_its_own_and_a_door_of_its_own(door: Door) -> None:
    status, _, body = got(door, "/agents/story/.well-known/agent-card.json")
    card = json.loads(body)
    assert (status, card["name"], [skill["id"] for skill in card["skills"]]) == (200, "story", ["story"])
    assert card["supportedInterfaces"][0]["url"].endswith("/agents/story/jsonrpc")
    assert card["supportedInterfaces"][-1]["protocolBinding"].startswith("urn:uuid:")
    assert card["supportedInterfaces"][-1]["url"].startswith("ws://")
    assert card["supportedInterfaces"][-1]["url"].endswith("/agents/story/ws")
    assert got(door, "/agents/nobody/.well-known/agent-card.json")[0] == 404
    assert got(door, "/.well-known/agent-card.json", "POST")[0] == 405


def test_the_url_of_a_card_answers_for_its_agent(server: Server) -> None:
    me = NewSpeaker(door=LiveDoor(server.url), key=server.owner, path="/agents/bench/jsonrpc")
    task = asyncio.run(me.send("hello"))
    assert asyncio.run(me.get(task["id"])) == task
    elsewhere = NewSpeaker(door=me.door, key=me.key, path="/agents/echo/jsonrpc")
    _, answer = asyncio.run(elsewhere.post(elsewhere.call("get", {"id": task["id"]})))
    assert answer["error"]["code"] == -32001


@pytest.mark.requirement("ACP-26", "ADR-05")
def test_health_is_told_to_everybody(server: Server) -> None:
    door = LiveDoor(server.url)
    assert got(door, "/healthz")[0] == 200
    assert json.loads(got(door, "/readyz")[2]) == {"status": "ok", "reasons": []}
