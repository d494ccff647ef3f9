"""The story, told by our client to a real server: each binding in each version."""

import asyncio
from typing import Any

import pytest

from a2a.client import ADR, REST, RPC, SOCKET, SPARC, VAPORA, ZONE
from tests.client_library.speaking import KINDS, ClientSpeaker
from tests.conftest import Server
from tests.support.chapters import CHAPTERS
from tests.support.doors import LiveDoor
from tests.support.story import Cast, Chapter

ABOUT_THE_WIRE = {
    "a_budget_below_the_minimum_cost_is_refused_with_both_numbers",
    "a_budget_is_the_most_that_a_task_may_cost",
    "a_budget_that_is_no_amount_is_refused_by_the_name_of_its_header",
    "a_last_event_that_is_no_number_is_refused_before_anything_is_done",
    "a_webhook_that_may_not_be_is_refused_with_its_field",
    "nobody_can_name_a_file_of_the_server",
    "what_is_not_offered_is_refused_with_its_code",
    "without_a_key_there_is_a_challenge",
}
"""Chapters that send what no value of the client says."""
WAYS = (
    *((version, binding) for version in ("1.0", "0.3", "0.2") for binding in (RPC, REST)),
    ("1.0", SOCKET),
    ("0.3", VAPORA),
    ("0.2", SPARC),
    ("1.0", ZONE),
    ("002", ADR),
)
"""Versions and bindings of our cards; 0.2, whose card is that of JSON-RPC and REST; and those that no card lists."""
STORY: list[Any] = [
    pytest.param(binding, version, chapter, id=f"{chapter.name}-{version}-{binding}")
    for version, binding in WAYS
    for chapter in CHAPTERS
    if chapter.suits(KINDS.get(binding, ClientSpeaker)) and chapter.name not in ABOUT_THE_WIRE
]


@pytest.mark.parametrize(("binding", "version", "chapter"), STORY)
@pytest.mark.requirement("ADR-14", "ZONE-01", "SPARC-01")
def test_our_client_tells_the_story(server: Server, binding: str, version: str, chapter: Chapter) -> None:
    def speaker(key: str) -> ClientSpeaker:
        kind = KINDS.get(binding, ClientSpeaker)
        return kind(door=LiveDoor(server.url), key=key, binding=binding, language=version)

    asyncio.run(chapter.tell(Cast(speaker(server.owner), speaker(server.owner), speaker(server.stranger))))


def test_the_chapters_that_are_left_out_exist() -> None:
    assert {chapter.name for chapter in CHAPTERS} >= ABOUT_THE_WIRE
