"""The moderator: agents answer the messages of a shared stream, each event becomes a chunk once, in order."""

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import dumps, encode_status
from a2a.documents import EventDocument
from a2a.requests import SendMessage, SendToSharedStream
from a2a.shared_streams import ChunkRole
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.models import AgentAnswer, Chunk, Event, Task
from tasks_app.operations import Context, perform
from tasks_app.operations.moderator import Moderator
from tasks_app.shared_streams.answers import release_all, take_turns, transfer
from tasks_app.shared_streams.log import Entry
from tasks_app.shared_streams.translation import INTERRUPTED, translate
from tests.conftest import Person, person, until
from tests.operations.conversations import answered, ask, chunks, say, start, talk

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def test_each_agent_answers_a_message_in_the_name_of_its_author(
    service: None, owner: Person, colleague: Person
) -> None:
    async def story() -> str:
        stream_id = await start(owner, "form-coroutine", "quick-coroutine", "colleague")
        await say(colleague, stream_id, "hi")
        await answered()
        return stream_id

    stream_id = talk(story)
    assert chunks(stream_id)[0] == ("colleague", "hi", True)
    assert sorted(chunks(stream_id)[1:]) == [("form-coroutine", "hi", True), ("quick-coroutine", "hi", True)]
    tasks = Task.objects.values_list("owner_id", "context_id", "agent").order_by("agent")
    assert list(tasks) == [
        (colleague.caller.owner_id, stream_id, "form-coroutine"),
        (colleague.caller.owner_id, stream_id, "quick-coroutine"),
    ]


@pytest.mark.parametrize("agent", ["conversation", "conversation-quickly"])
def test_a_token_for_one_agent_hears_nothing_of_others_through_it(service: None, owner: Person, agent: str) -> None:
    """Ask an agent for its conversation in a stream whose context has a message to another agent."""
    limited = owner._replace(caller=replace(owner.caller, agents=frozenset({agent})))

    async def story() -> str:
        stream_id = await start(owner, agent)
        elsewhere = Message(message_id="m", role=Role.USER, parts=(Part(text="the secret"),), context_id=stream_id)
        await perform(SendMessage(message=elsewhere), Context(caller=owner.caller, agent="form-coroutine"))
        await say(limited, stream_id)
        await answered()
        await say(owner, stream_id)
        await answered()
        return stream_id

    first, second = [text for author, text, _ in chunks(talk(story)) if author == agent]
    assert "the secret" not in first
    assert "the secret" in second


@pytest.mark.parametrize(
    ("agent", "text"),
    [
        ("replies", "You said hello"),
        ("replies-late", "You said hello"),
        ("rejects", "That is not my job."),
        ("asks-quickly", "Which one?"),
    ],
)
def test_every_end_of_an_answer_is_a_last_chunk(service: None, owner: Person, agent: str, text: str) -> None:
    async def story() -> str:
        stream_id = await start(owner, agent)
        await say(owner, stream_id)
        await answered()
        return stream_id

    assert chunks(talk(story))[1:] == [(agent, text, True)]


def test_the_next_message_answers_the_question_of_an_agent(service: None, owner: Person) -> None:
    async def story() -> str:
        stream_id = await start(owner, "asks")
        await say(owner, stream_id, "red")
        await say(owner, stream_id, "blue")
        await answered()
        return stream_id

    stream_id = talk(story)
    assert [text for author, text, _ in chunks(stream_id) if author == "asks"] == ["Which one?", "red and blue"]
    assert Task.objects.count() == 1
    assert list(AgentAnswer.objects.values_list("due_at", flat=True)) == [None, None]


def test_an_agent_that_the_author_may_not_call_says_so(service: None, owner: Person) -> None:
    limited = person("limited", "home", "acp:streams:write acp:streams:read")

    async def story() -> str:
        stream_id = await start(owner, "scoped", "echo", "limited")
        await say(limited, stream_id)
        await answered()
        return stream_id

    by_author = {author: (text, is_last) for author, text, is_last in chunks(talk(story))}
    assert "scope" in by_author["scoped"][0]
    assert by_author["scoped"][1] is True


def test_another_moderator_goes_on_where_the_first_one_ended(service: None, owner: Person) -> None:
    """The first one dies after it has written some chunks, and its lease is over."""
    message = Part(data={"chunks": 30, "size": 50})

    async def story() -> str:
        stream_id = await start(owner, "writes")
        await ask(owner, SendToSharedStream(stream_id=stream_id, parts=(message,), role=ChunkRole.USER))
        first = Moderator()
        await first.begin_turns()
        agents = Chunk.objects.filter(stream_id=stream_id, author="writes")
        await asyncio.to_thread(until, lambda: bridge.do(DoSlowly(agents.exists)), "the first chunk of the agent")
        for turn in first.turns:
            turn.cancel()
        await asyncio.gather(*first.turns, return_exceptions=True)
        await bridge.ask(Do(release_all))
        await asyncio.gather(answered(), answered(), answered())
        return stream_id

    stream_id = talk(story)
    (task,) = Task.objects.all()
    events = Event.objects.filter(task_id=task.id, kind="artifactUpdate").order_by("seq").values_list("seq", flat=True)
    made_of = Chunk.objects.filter(task_id=task.id).order_by("seq").values_list("task_seq", flat=True)
    assert list(made_of)[: len(events)] == list(events)
    assert len(made_of) - len(events) in (0, 1)  # An end that comes by itself has a chunk without text.
    assert [is_last for _, _, is_last in chunks(stream_id)][1:] == [False] * (len(made_of) - 1) + [True]


def test_chunks_and_the_cursor_are_written_together_or_not_at_all(service: None, owner: Person) -> None:
    async def story() -> str:
        stream_id = await start(owner, "form-coroutine")
        await say(owner, stream_id)
        return stream_id

    stream_id = talk(story)
    (turn,) = bridge.do(Do(lambda: take_turns(10)))
    assert bridge.do(Do(lambda: take_turns(10))) == []
    entry = Entry(author=turn.agent, role=ChunkRole.AGENT, parts='[{"text":"x"}]', at=clock.now())
    for expected in (True, False):
        place = bridge.do(Do(lambda: transfer(turn, [entry], before=0, cursor=3, is_over=False)))
        assert (place is not None) is expected
    assert chunks(stream_id)[1:] == [("form-coroutine", "x", False)]


def test_no_participant_puts_words_into_the_mouth_of_an_agent(service: None, owner: Person) -> None:
    """The author sends a message of their own under the place of the answer, before the answer is due."""

    async def story() -> str:
        stream_id = await start(owner, "form-coroutine")
        words = Message(message_id=f"{stream_id}/1/form-coroutine", role=Role.USER, parts=(Part(text="forged"),))
        await perform(SendMessage(message=words), Context(caller=owner.caller, agent="form-coroutine"))
        await say(owner, stream_id, "true")
        await answered()
        return stream_id

    stream_id = talk(story)
    assert [text for _, text, _ in chunks(stream_id)] == ["true", "true"]


def test_one_author_leaves_room_for_the_answers_to_others(
    service: None, owner: Person, colleague: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.shared_streams.answers.OF_ONE", 2)

    async def story() -> None:
        for who in (owner, owner, owner, owner, colleague):
            await say(who, await start(who, "echo"))

    talk(story)
    mine, theirs = owner.caller.owner_id, colleague.caller.owner_id
    authors = [turn.caller.owner_id for turn in bridge.do(Do(lambda: take_turns(3)))]
    assert authors == [mine, mine, theirs]
    assert bridge.do(Do(lambda: take_turns(10, {mine: 2, theirs: 1}))) == []
    assert [turn.caller.owner_id for turn in bridge.do(Do(lambda: take_turns(10, {mine: 1})))] == [mine]


@pytest.mark.parametrize("text", ["loud", "silent"])
def test_an_attempt_that_died_is_ended_by_a_chunk_of_its_own(service: None, owner: Person, text: str) -> None:
    async def story() -> str:
        stream_id = await start(owner, "fails-once")
        await say(owner, stream_id, text)
        await answered()
        return stream_id

    stream_id = talk(story)
    answer = Chunk.objects.filter(stream_id=stream_id, author="fails-once").order_by("seq")
    dead = [("agent", "try 1", False), ("system", f"{INTERRUPTED}?", True)] if text == "loud" else []
    shown = [(row.role, *one[1:]) for row, one in zip(answer, chunks(stream_id)[1:], strict=True)]
    assert [one for one in shown if one[1]] == [*dead, ("agent", "try 2", shown[-1][1] != "")]
    assert shown[-1][2]


def test_an_attempt_is_ended_whose_chunks_came_before_its_death(service: None, owner: Person) -> None:
    async def story() -> str:
        stream_id = await start(owner, "form-coroutine")
        await say(owner, stream_id)
        return stream_id

    stream_id = talk(story)
    (turn,) = bridge.do(Do(lambda: take_turns(10)))
    chunk = Entry(author=turn.agent, role=ChunkRole.AGENT, parts='[{"text":"x"}]', at=clock.now(), task_id="t")
    end = replace(chunk, role=ChunkRole.SYSTEM, is_last=True, ends_attempt=True)
    for cursor, entry in enumerate([end, chunk, end, end, chunk, end]):
        bridge.do(Do(partial(transfer, turn, [entry], before=cursor, cursor=cursor + 1, is_over=False)))
    roles = Chunk.objects.filter(stream_id=stream_id, seq__gt=1).order_by("seq").values_list("role", flat=True)
    assert list(roles) == ["agent", "system", "agent", "system"]


def test_an_answer_without_words_has_an_end_after_a_silent_attempt() -> None:
    at = clock.now()
    states = [TaskState.SUBMITTED, TaskState.WORKING, TaskState.COMPLETED]
    events = [
        EventDocument(
            task_id="t",
            context_id="c",
            seq=seq,
            kind="statusUpdate",
            payload=dumps({"status": encode_status(Status(state=state, timestamp=at))}),
            state=state,
        )
        for seq, state in enumerate(states, 1)
    ]
    entries, cursor, is_over = translate("echo", events, at)
    assert ([entry.ends_attempt for entry in entries], cursor, is_over) == ([True, False], 3, True)
    assert entries[-1].is_last
