"""Shared streams: who takes part, what the log takes, and every move between the states."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import product
from typing import Any

import orjson
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a.errors import (
    ChunkConflict,
    InvalidParams,
    MissingScope,
    RateLimited,
    SharedStreamClosed,
    SharedStreamNotFound,
    UnknownAgent,
)
from a2a.requests import (
    EndSharedStream,
    FollowSharedStream,
    SendChunk,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.shared_streams import MOVES, ChunkReceipt, ChunkRole, SharedStreamDocument, SharedStreamState
from a2a.types import Part
from tasks_app import clock
from tasks_app.database.sql import on_postgres
from tasks_app.event_log.read_events import PAGE_SIZE
from tasks_app.ids import uuid7
from tasks_app.models import AgentAnswer, Chunk, Participant, SharedStream
from tasks_app.operations import Follow
from tasks_app.shared_streams.log import append, resume
from tasks_app.shared_streams.reading import ReadChunks
from tasks_app.shared_streams.translation import state_entry
from tasks_app.upkeep.idle_streams import close_idle_streams
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import Person, person
from tests.operations.asking import ask

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
STATES = list(SharedStreamState)


def start(who: Person, *participants: str, **more: Any) -> SharedStreamDocument:
    stream = ask(who, StartSharedStream(participants=participants, **more))
    assert isinstance(stream, SharedStreamDocument)
    return stream


def say(who: Person, stream_id: str, text: str = "hello", **more: Any) -> ChunkReceipt:
    message = SendToSharedStream(stream_id=stream_id, parts=(Part(text=text),), role=ChunkRole.AGENT)
    receipt = ask(who, message, **more)
    assert isinstance(receipt, ChunkReceipt)
    return receipt


def piece(who: Person, stream_id: str, sequence: int, text: str = "piece", *, is_last: bool = False) -> ChunkReceipt:
    chunk = SendChunk(
        stream_id=stream_id, parts=(Part(text=text),), role=ChunkRole.AGENT, sequence=sequence, is_last=is_last
    )
    receipt = ask(who, chunk)
    assert isinstance(receipt, ChunkReceipt)
    return receipt


def end(who: Person, stream_id: str, reason: str = "", *, pauses: bool = False) -> SharedStreamDocument:
    stream = ask(who, EndSharedStream(stream_id=stream_id, reason=reason, pauses=pauses))
    assert isinstance(stream, SharedStreamDocument)
    return stream


def texts(stream_id: str) -> list[str]:
    rows = Chunk.objects.filter(stream_id=stream_id).order_by("seq")
    assert [row.seq for row in rows] == list(range(1, len(rows) + 1)), "the numbers have gaps"
    return ["".join(part.get("text", "?") for part in orjson.loads(row.parts)) for row in rows]


# -------------------------------------------------------------- taking part


def test_the_starter_takes_part_beside_agents_and_accounts_of_its_tenant(owner: Person, colleague: Person) -> None:
    stream = start(owner, "echo", "colleague", "echo", metadata={"purpose": "test"})
    assert stream.participants == ("owner", "echo", "colleague")
    assert (stream.state, stream.seq, stream.metadata) == (SharedStreamState.ACTIVE, 0, {"purpose": "test"})
    kinds = Participant.objects.filter(stream_id=stream.id).values_list("name", "principal_id")
    assert dict(kinds) == {"owner": owner.caller.owner_id, "echo": None, "colleague": colleague.caller.owner_id}


@pytest.mark.parametrize("name", ["nobody", "stranger", "", "\0"])
def test_an_unknown_participant_is_refused_and_nothing_is_stored(owner: Person, stranger: Person, name: str) -> None:
    with pytest.raises(UnknownAgent):
        start(owner, "echo", name)
    assert not SharedStream.objects.exists()


def test_a_caller_who_takes_no_part_finds_no_stream(owner: Person, colleague: Person, stranger: Person) -> None:
    stream = start(owner, "echo")
    for who, stream_id in [(colleague, stream.id), (stranger, stream.id), (owner, uuid7()), (owner, "\0")]:
        for request in (
            StartSharedStream(stream_id=stream_id),
            FollowSharedStream(stream_id=stream_id),
            SendToSharedStream(stream_id=stream_id, parts=(Part(text="x"),), role=ChunkRole.AGENT),
            SendChunk(stream_id=stream_id, parts=(Part(text="x"),), role=ChunkRole.AGENT, sequence=1),
            EndSharedStream(stream_id=stream_id),
        ):
            with pytest.raises(SharedStreamNotFound) as refusal:
                ask(who, request)
            assert refusal.value.facts == {"streamId": stream_id}
    assert texts(stream.id) == []


def test_every_participant_may_send_and_end(owner: Person, colleague: Person) -> None:
    stream = start(owner, "colleague")
    assert [say(owner, stream.id, "one").seq, say(colleague, stream.id, "two").seq] == [1, 2]
    closed = end(colleague, stream.id, "all is said")
    assert (closed.state, closed.reason, closed.seq) == (SharedStreamState.CLOSED, "all is said", 3)
    assert texts(stream.id) == ["one", "two", "all is said"]
    assert list(Chunk.objects.order_by("seq").values_list("author", "role", "is_last")) == [
        ("owner", "agent", True),
        ("colleague", "agent", True),
        ("colleague", "system", True),
    ]


def test_participants_are_added_by_a_later_start(owner: Person, colleague: Person) -> None:
    stream = start(owner)
    with pytest.raises(SharedStreamNotFound):
        say(colleague, stream.id)
    assert ask(owner, StartSharedStream(stream_id=stream.id, participants=("colleague", "echo"))).participants == (
        "owner",
        "colleague",
        "echo",
    )
    say(colleague, stream.id)
    again = ask(colleague, StartSharedStream(stream_id=stream.id, participants=("echo", "colleague", "owner")))
    assert again.participants == ("owner", "colleague", "echo")


def test_scopes_of_streams_are_needed_to_write_and_to_follow(owner: Person) -> None:
    reader = person("reader", "home", "acp:streams:read")
    stream = start(owner, "reader")
    assert isinstance(ask(reader, FollowSharedStream(stream_id=stream.id)), Follow)
    for request in (StartSharedStream(), FollowSharedStream(), EndSharedStream(stream_id=stream.id)):
        with pytest.raises(MissingScope):
            ask(reader, request)
    end(owner, stream.id, pauses=True)
    with pytest.raises(MissingScope):
        ask(reader, FollowSharedStream(stream_id=stream.id))  # It would resume the stream.
    with pytest.raises(MissingScope):
        ask(person("tasks", "home", "acp:tasks:write"), StartSharedStream())


# ------------------------------------------------------------------ the log


def test_a_chunk_that_is_sent_twice_is_stored_once(owner: Person, colleague: Person) -> None:
    stream = start(owner, "colleague")
    first, again = piece(owner, stream.id, 1), piece(owner, stream.id, 1)
    assert (first.seq, first.is_repeat, again.seq, again.is_repeat) == (1, False, 1, True)
    assert piece(colleague, stream.id, 1).seq == 2  # The number is its author's own.
    last = piece(owner, stream.id, 2, "end", is_last=True)
    assert piece(owner, stream.id, 2, "end", is_last=True).seq == last.seq
    assert texts(stream.id) == ["piece", "piece", "end"]


def test_after_its_last_chunk_an_author_may_number_from_one_again(owner: Person) -> None:
    stream = start(owner)
    for _ in range(2):
        piece(owner, stream.id, 1)
        piece(owner, stream.id, 2, "end", is_last=True)
    assert texts(stream.id) == ["piece", "end", "piece", "end"]


def test_a_paused_stream_takes_nothing_until_it_is_resumed(owner: Person, colleague: Person) -> None:
    stream = start(owner, "colleague")
    assert end(owner, stream.id, "lunch", pauses=True).state is SharedStreamState.PAUSED
    for send in (lambda: say(colleague, stream.id), lambda: piece(colleague, stream.id, 1)):
        with pytest.raises(SharedStreamClosed) as refusal:
            send()
        assert "paused" in refusal.value.facts["detail"]
    assert ask(colleague, StartSharedStream(stream_id=stream.id)).state is SharedStreamState.ACTIVE
    say(colleague, stream.id)
    assert texts(stream.id) == ["lunch", "resumed", "hello"]


@pytest.mark.parametrize("name", ["colleague", "echo"])
def test_a_paused_stream_is_resumed_and_gets_participants_in_one_call(
    owner: Person, colleague: Person, name: str
) -> None:
    stream = start(owner)
    end(owner, stream.id, "lunch", pauses=True)
    resumed = ask(owner, StartSharedStream(stream_id=stream.id, participants=(name,)))
    assert (resumed.state, resumed.participants) == (SharedStreamState.ACTIVE, ("owner", name))
    say(owner, stream.id)
    assert texts(stream.id) == ["lunch", "resumed", "hello"]


def test_a_stream_that_is_closed_meanwhile_gets_no_participants(owner: Person, colleague: Person) -> None:
    stream = start(owner)
    end(owner, stream.id, pauses=True)
    added = [Participant(stream_id=stream.id, name="echo")]
    change = state_entry("owner", SharedStreamState.ACTIVE, "resumed", principal_id=owner.caller.owner_id)
    resume(stream.id, [], change, None)
    with pytest.raises(SharedStreamClosed):
        resume(stream.id, added, change, None)
    assert list(Participant.objects.values_list("name", flat=True)) == ["owner"]


def test_a_subscription_that_goes_on_leaves_a_pause_as_it_is(owner: Person) -> None:
    stream = start(owner)
    end(owner, stream.id, pauses=True)
    follow = ask(owner, FollowSharedStream(stream_id=stream.id, after=1))
    assert (follow.first.state, follow.after) == (SharedStreamState.PAUSED, 1)
    assert SharedStream.objects.get().state == "paused"
    assert ask(owner, FollowSharedStream(stream_id=stream.id)).first.state is SharedStreamState.ACTIVE


def test_a_closed_stream_takes_nothing_more(owner: Person) -> None:
    stream = start(owner, "echo")
    end(owner, stream.id)
    for request in (
        StartSharedStream(stream_id=stream.id),
        FollowSharedStream(stream_id=stream.id),
        SendToSharedStream(stream_id=stream.id, parts=(Part(text="x"),), role=ChunkRole.AGENT),
        SendChunk(stream_id=stream.id, parts=(Part(text="x"),), role=ChunkRole.AGENT, sequence=1),
        EndSharedStream(stream_id=stream.id),
        EndSharedStream(stream_id=stream.id, pauses=True),
    ):
        with pytest.raises(SharedStreamClosed):
            ask(owner, request)
    assert texts(stream.id) == ["the stream is closed"]


@pytest.mark.parametrize(("source", "target"), [*product(STATES, STATES)])
def test_a_move_is_in_the_table_or_is_refused(
    owner: Person, source: SharedStreamState, target: SharedStreamState
) -> None:
    stream = start(owner)
    SharedStream.objects.filter(pk=stream.id).update(state=source.value)
    change = state_entry("owner", target, "")
    if target in MOVES[source]:
        assert append(stream.id, [change]).state is target
    else:
        with pytest.raises(SharedStreamClosed):
            append(stream.id, [change])
    row = SharedStream.objects.get(pk=stream.id)
    assert row.state == (target if target in MOVES[source] else source)


def test_a_number_with_other_content_is_a_conflict_within_its_message(owner: Person, colleague: Person) -> None:
    stream = start(owner, "colleague")
    piece(owner, stream.id, 1, "one")
    piece(colleague, stream.id, 1, "another author")
    for text, is_last in (("two", False), ("one", True)):
        with pytest.raises(ChunkConflict) as refusal:
            piece(owner, stream.id, 1, text, is_last=is_last)
        assert refusal.value.facts == {"streamId": stream.id, "sequence": "1"}
    piece(owner, stream.id, 2, "end", is_last=True)
    piece(owner, stream.id, 2, "a new message", is_last=True)
    piece(owner, stream.id, 1, "and one more")
    assert piece(owner, stream.id, 1, "and one more").is_repeat
    with pytest.raises(ChunkConflict):
        piece(owner, stream.id, 1, "something else")
    assert texts(stream.id) == ["one", "another author", "end", "a new message", "and one more"]


@given(numbers=st.lists(st.tuples(st.booleans(), st.integers(1, 4), st.booleans()), max_size=12))
@settings(max_examples=20)
def test_the_numbers_have_no_gaps_and_a_repeat_takes_none(owner: Person, colleague: Person, numbers: list[Any]) -> None:
    stream = start(owner, "colleague")
    for is_owner, number, is_last in numbers:
        who = owner if is_owner else colleague
        try:
            receipt = piece(who, stream.id, number, is_last=is_last)
        except ChunkConflict:
            continue
        again = piece(who, stream.id, number, is_last=is_last)
        assert (again.seq, again.is_repeat) == (receipt.seq, True)
    assert len(texts(stream.id)) == SharedStream.objects.get(pk=stream.id).last_seq


# ------------------------------------------------------------------- limits


@contextmanager
def refused(words: str) -> Iterator[None]:
    with pytest.raises(InvalidParams) as refusal:
        yield
    assert words in refusal.value.message


def test_a_stream_has_limits_and_can_still_be_closed(owner: Person, settings: Any) -> None:
    settings.A2A_SHARED_STREAM_PARTICIPANTS = 2
    with refused("too many"):
        start(owner, "echo", "story")
    stream = start(owner, "echo")
    with refused("too many"):
        ask(owner, StartSharedStream(stream_id=stream.id, participants=("story",)))
    settings.A2A_SHARED_STREAM_CHUNKS = 1
    say(owner, stream.id)
    with refused("2 chunks"):
        say(owner, stream.id)
    with refused("2 chunks"):
        end(owner, stream.id, pauses=True)
    for state in (SharedStreamState.PAUSED, SharedStreamState.ACTIVE):
        append(stream.id, [state_entry("operator:olga", state, "")])
    settings.A2A_SHARED_STREAM_CHUNKS, settings.A2A_SHARED_STREAM_CHARACTERS = 10, 100
    with refused("characters"):
        say(owner, stream.id, "x" * 100)
    assert end(owner, stream.id).state is SharedStreamState.CLOSED


@pytest.mark.parametrize(
    "request_of",
    [
        lambda id: SendToSharedStream(stream_id=id, parts=(), role=ChunkRole.USER),
        lambda id: SendToSharedStream(stream_id=id, parts=(Part(url="taskdesk-file:x"),), role=ChunkRole.USER),
        lambda id: SendChunk(stream_id=id, parts=(Part(text="x"),), role=ChunkRole.USER, sequence=-1),
        lambda id: SendChunk(stream_id=id, parts=(Part(text="x"),), role=ChunkRole.USER, sequence=2**63),
        lambda id: EndSharedStream(stream_id=id, reason="x" * 1001),
        lambda id: StartSharedStream(stream_id=id, metadata={"late": True}),
        lambda id: StartSharedStream(metadata={"long": "x" * 70_000}),
    ],
    ids=["no-parts", "file", "negative", "large-number", "reason", "late-metadata", "long-metadata"],
)
def test_a_wrong_field_is_named(owner: Person, request_of: Any) -> None:
    stream = start(owner)
    with pytest.raises(InvalidParams) as refusal:
        ask(owner, request_of(stream.id))
    assert refusal.value.violations[0][0]


@pytest.mark.skipif(on_postgres(), reason="PostgreSQL plans by the number of rows")
def test_the_search_for_a_repeat_goes_by_the_number_of_its_author(owner: Person) -> None:
    stream = start(owner)
    with CaptureQueriesContext(connection) as queries:
        piece(owner, stream.id, 1)
    (search,) = [query["sql"] for query in queries if '"own_seq" = 1' in query["sql"]]
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {search}")
        assert "chunk_own" in str(cursor.fetchall())


def test_an_owner_has_no_more_open_streams_than_the_limit(owner: Person, colleague: Person, settings: Any) -> None:
    settings.A2A_OWNER_SHARED_STREAMS = 2
    first, _ = start(owner), start(owner)
    with pytest.raises(RateLimited) as refusal:
        start(owner)
    wait = str(refusal.value.retry_after)
    assert refusal.value.facts == {"limit": "open shared streams", "most": "2", "retryAfter": wait}
    start(colleague)
    end(owner, first.id)
    start(owner)
    settings.A2A_OWNER_SHARED_STREAMS = 0
    start(owner)
    assert SharedStream.objects.count() == 5


# ------------------------------------------------------------------- upkeep


def test_an_idle_stream_is_closed_and_later_deleted(owner: Person, settings: Any) -> None:
    idle, busy = start(owner, "echo"), start(owner)
    say(owner, idle.id)
    SharedStream.objects.filter(pk=idle.id).update(active_at=clock.now() - timedelta(hours=25))
    assert close_idle_streams() == 1
    row = SharedStream.objects.get(pk=idle.id)
    assert (row.state, row.reason) == ("closed", "no participant sent anything for 24 hours")
    assert not AgentAnswer.objects.filter(due_at__isnull=False).exists()
    assert SharedStream.objects.get(pk=busy.id).state == "active"
    settings.A2A_SHARED_STREAM_HOURS = 0
    assert close_idle_streams() == 0
    kind = ROW_KINDS["shared_streams"]
    assert kind.old(clock.now() + timedelta(hours=1)).count() == 1
    assert kind.delete(clock.now() + timedelta(hours=1), "", 100).count == 1
    assert list(SharedStream.objects.values_list("pk", flat=True)) == [busy.id]
    assert not Chunk.objects.exists()
    assert not AgentAnswer.objects.exists()


def test_a_page_of_chunks_ends_with_the_one_that_makes_up_its_size(owner: Person) -> None:
    stream = start(owner)
    for place, share in enumerate((2, 2, 2, 1), 1):
        piece(owner, stream.id, place, "x" * (PAGE_SIZE // share))
    pages, after = [], 0
    while (page := ReadChunks.do_many([ReadChunks(stream_id=stream.id, after=after)])[0]) and after < 4:
        after = page[-1].seq
        pages.append([chunk.seq for chunk in page])
        assert all(chunk.size > PAGE_SIZE // 2 for chunk in page)
    assert (pages, page) == ([[1, 2], [3, 4]], [])
