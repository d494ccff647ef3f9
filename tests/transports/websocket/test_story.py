"""The story over WebSocket, in each dialect, against a real server."""

import asyncio
from collections.abc import Iterator

import pytest

from tests.conftest import Server, running_server, until
from tests.support.chapters import CHAPTERS
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.sparc_speaker import PinnedSparcSpeaker
from tests.support.speaker import Speaker
from tests.support.story import Chapter, cast
from tests.support.zone_speaker import ZoneSpeaker
from tests.transports.websocket.door import SocketDoor

SPEAKERS: dict[str, tuple[type[Speaker], str | None]] = {
    "1.0": (NewSpeaker, "1.0"),
    "0.3": (OldSpeaker, None),
    "0.2": (OldSpeaker, "0.2"),
    "zones": (ZoneSpeaker, None),
}
ELSEWHERE = {"without_a_key_there_is_a_challenge"}
"""Chapters about the handshake, which comes before any call has an id: see test_handshake.py."""


@pytest.mark.parametrize(
    ("dialect", "chapter"),
    [
        pytest.param(speaker, chapter, id=f"{chapter.name}-{name}")
        for name, speaker in SPEAKERS.items()
        for chapter in CHAPTERS
        if chapter.suits(speaker[0]) and chapter.name not in ELSEWHERE
    ],
)
@pytest.mark.requirement("ZONE-10", "SPARC-18")
def test_the_story_over_websocket(server: Server, dialect: tuple[type[Speaker], str | None], chapter: Chapter) -> None:
    asyncio.run(chapter.tell(cast(*dialect, SocketDoor(server.url), server.owner, server.stranger)))
    check_door(server)


def check_door(server: Server) -> None:
    doors = "select distinct door from tasks_app_exchange"
    until(lambda: ("websocket",) in server.rows(doors), "the calls are recorded")


_PINS = """
for name, tenant, key in (("developer", "default", "{owner}"), ("stranger", "abroad", "{stranger}")):
    access.new_key(name, tenant=tenant, name="pinned", key=key, language="sparc")
"""
OWNER, STRANGER = "tdk_pinned-key-of-the-owner", "tdk_pinned-key-of-the-stranger"


@pytest.fixture(scope="module")
def pinned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Give a server with keys that are pinned to SPARC, which is at no path of a WebSocket."""
    script = _PINS.format(owner=OWNER, stranger=STRANGER)
    with running_server(tmp_path_factory.mktemp("pinned"), script=script) as server:
        yield server


@pytest.mark.parametrize(
    "chapter",
    [
        pytest.param(chapter, id=chapter.name)
        for chapter in CHAPTERS
        if chapter.suits(PinnedSparcSpeaker) and chapter.name not in ELSEWHERE
    ],
)
@pytest.mark.requirement("SPARC-18")
def test_the_story_in_sparc_over_websocket(pinned: Server, chapter: Chapter) -> None:
    asyncio.run(chapter.tell(cast(PinnedSparcSpeaker, None, SocketDoor(pinned.url), OWNER, STRANGER)))  # type: ignore[arg-type]
    check_door(pinned)
