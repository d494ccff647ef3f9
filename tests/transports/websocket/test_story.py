"""The story over WebSocket, in each dialect, against a real server."""

import asyncio

import pytest

from tests.conftest import Server, until
from tests.support.chapters import CHAPTERS
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.speaker import Speaker
from tests.support.story import Chapter, cast
from tests.transports.websocket.door import SocketDoor

pytestmark = pytest.mark.storage

SPEAKERS: dict[str, tuple[type[Speaker], str | None]] = {
    "1.0": (NewSpeaker, "1.0"),
    "0.3": (OldSpeaker, None),
    "0.2": (OldSpeaker, "0.2"),
}
ELSEWHERE = {"without_a_key_there_is_a_challenge"}
"""Chapters about the handshake, which comes before any call has an id: see test_handshake.py."""


@pytest.mark.parametrize(
    ("dialect", "chapter"),
    [
        pytest.param(speaker, chapter, id=f"{chapter.name}-{name}")
        for name, speaker in SPEAKERS.items()
        for chapter in CHAPTERS
        if chapter.needs in {"", *speaker[0].traits} and chapter.name not in ELSEWHERE
    ],
)
@pytest.mark.requirement("ZONE-10", "SPARC-18")
def test_the_story_over_websocket(server: Server, dialect: tuple[type[Speaker], str | None], chapter: Chapter) -> None:
    asyncio.run(chapter.tell(cast(*dialect, SocketDoor(server.url), server.owner, server.stranger)))
    doors = "select distinct door from tasks_app_exchange"
    until(lambda: ("websocket",) in server.rows(doors), "the calls are recorded")
