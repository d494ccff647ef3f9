"""Idle shared streams: owners take turns where a sweep closes them."""

from datetime import timedelta
from typing import Any

import pytest

from a2a.requests import SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkRole
from a2a.types import Part
from tasks_app import clock
from tasks_app.models import SharedStream
from tasks_app.upkeep import expiry
from tasks_app.upkeep.idle_streams import close_idle_streams
from tests.conftest import Person
from tests.operations.asking import ask

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def start(who: Person, hours: int) -> None:
    """Begin a shared stream with a message that was sent so many hours ago."""
    stream = ask(who, StartSharedStream())
    ask(who, SendToSharedStream(stream_id=stream.id, parts=(Part(text="hello"),), role=ChunkRole.USER))
    SharedStream.objects.filter(pk=stream.id).update(active_at=clock.now() - timedelta(hours=hours))


def test_owners_with_idle_shared_streams_take_turns(
    owner: Person, colleague: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "BATCH", 4)
    people = {owner: 9, colleague: 2, stranger: 2}
    for who, number in people.items():
        for place in range(number):
            start(who, 99 - place if who is owner else 50)
    start(colleague, 1)

    def closed() -> list[int]:
        rows: Any = SharedStream.objects.filter(state="closed")
        return [rows.filter(owner_id=who.caller.owner_id).count() for who in people]

    assert close_idle_streams() == 4
    assert closed()[1:] == [1, 1]
    assert close_idle_streams() == 4
    assert (closed(), close_idle_streams(), closed()) == ([4, 2, 2], 4, [8, 2, 2])
    assert (close_idle_streams(), close_idle_streams(), closed()) == (1, 0, [9, 2, 2])
