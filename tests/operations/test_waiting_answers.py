"""Answers that wait give their places back, and go on once they can, whatever process died meanwhile."""

import asyncio

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a.requests import EndSharedStream, SendMessage, StartSharedStream
from a2a.types import Message, Part, Role
from tasks_app.database.bridge import bridge
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Do, DoSlowly
from tasks_app.models import AgentAnswer, SharedStream, Task
from tasks_app.operations.moderator import Moderator
from tasks_app.shared_streams.answers import release_all, take_turns
from tasks_app.shared_streams.waiting import look, wait, wake_by_id
from tests.conftest import SLACK, Person, until
from tests.operations.conversations import answered, ask, chunks, read, say, settled, start, talk, waiting

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def test_an_answer_waits_while_the_stream_is_paused(service: None, owner: Person) -> None:
    async def story() -> str:
        stream_id = await start(owner, "form-coroutine", "quick-coroutine")
        await say(owner, stream_id)
        await ask(owner, EndSharedStream(stream_id=stream_id, pauses=True))
        moderator = Moderator()
        while not all(await read(waiting)):
            await settled(moderator)
        assert moderator.turns == {}
        assert (await read(lambda: SharedStream.objects.get(pk=stream_id))).last_seq == 2
        await ask(owner, StartSharedStream(stream_id=stream_id))
        assert await read(waiting) == [False, False]
        await answered()
        return stream_id

    stream_id = talk(story)
    assert [text for _, text, _ in chunks(stream_id)] == ["hello", "the stream is paused", "resumed", "hello", "hello"]
    assert Task.objects.count() == 2


async def signed_in(who: Person) -> None:
    """Give the credentials that the oldest task needs."""
    task = await read(lambda: Task.objects.filter(state="auth_required").order_by("id").first())
    words = Message(message_id=f"in-{task.id}", role=Role.USER, parts=(Part(text="in"),), task_id=task.id)
    await ask(who, SendMessage(message=words, return_immediately=True))


async def begun_to_wait(moderator: Moderator, answers: int = 1) -> None:
    """Follow what is due until that number of answers waits for credentials."""
    tasks = Task.objects.filter(state="auth_required")
    async with asyncio.timeout(20 + SLACK):
        while await read(tasks.count) < answers or not all(await read(waiting)):
            await settled(moderator)


def test_answers_that_wait_for_credentials_leave_their_places(
    service: None, owner: Person, colleague: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.operations.moderator.AT_ONCE", 2)
    monkeypatch.setattr("tasks_app.shared_streams.answers.OF_ONE", 2)

    async def story() -> tuple[str, str]:
        moderator = Moderator()
        for _ in range(3):
            await say(owner, await start(owner, "asks-credentials"))
        await begun_to_wait(moderator, 3)
        theirs, mine = await start(colleague, "form-coroutine"), await start(owner, "form-coroutine")
        await say(colleague, theirs, "hi")
        await say(owner, mine, "hi")
        ended = AgentAnswer.objects.filter(agent="form-coroutine", due_at__isnull=True)
        while await read(ended.count) < 2:
            await settled(moderator)
        assert await read(waiting) == [True, True, True]
        for _ in range(3):
            await signed_in(owner)
            await asyncio.to_thread(until, lambda: bridge.do(DoSlowly(_gone_on)), "the agent has gone on")
        await answered(moderator)
        return theirs, mine

    for stream_id in talk(story):
        assert [text for _, text, _ in chunks(stream_id)] == ["hi", "hi"]
    texts = [[text for _, text, _ in chunks(stream.pk)] for stream in SharedStream.objects.order_by("pk")[:3]]
    assert texts == [["hello", "Please sign in.", "signed in"]] * 3


def _gone_on() -> bool:
    return not Task.objects.exclude(state__in=["auth_required", "completed"]).exists()


def test_a_hint_of_its_task_wakes_an_answer_that_waits(
    service: None, owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasks_app.operations.moderator.look", lambda after: ([], 0))

    async def story() -> str:
        stream_id = await start(owner, "asks-credentials")
        await say(owner, stream_id)
        moderator = Moderator()
        moderator.start()
        open_answers = AgentAnswer.objects.filter(due_at__isnull=False)
        try:
            await asyncio.to_thread(until, lambda: moderator.resting, "the answer waits")
            assert await read(waiting) == [True]
            await signed_in(owner)
            await asyncio.to_thread(until, lambda: not bridge.do(DoSlowly(open_answers.exists)), "the answer is over")
        finally:
            moderator.stop()
        assert moderator.resting == {}
        return stream_id

    assert [text for _, text, _ in chunks(talk(story))] == ["hello", "Please sign in.", "signed in"]


@pytest.mark.parametrize("point", ["taken", "waiting", "woken", "taken-again", "paused", "resumed"])
def test_a_death_at_any_point_loses_and_doubles_nothing(service: None, owner: Person, point: str) -> None:
    """Each moderator but the last one dies: it keeps what it has taken, and does no more with it."""

    async def story() -> str:
        stream_id = await start(owner, "asks-credentials")
        await say(owner, stream_id)
        if point == "taken":
            await bridge.ask(Do(lambda: take_turns(10)))
            await bridge.ask(Do(release_all))
        await begun_to_wait(Moderator())
        if point in {"paused", "resumed"}:
            await ask(owner, EndSharedStream(stream_id=stream_id, pauses=True))
        await signed_in(owner)
        await asyncio.to_thread(until, lambda: bridge.do(DoSlowly(_gone_on)), "the agent has gone on")
        if point in {"woken", "taken-again"}:
            ready, _ = await read(lambda: look(0))
            assert await bridge.ask(Do(lambda: wake_by_id(ready))) == 1
        if point == "taken-again":
            assert len(await bridge.ask(Do(lambda: take_turns(10)))) == 1
            await bridge.ask(Do(release_all))
        if point in {"paused", "resumed"}:
            await settled(Moderator())
            assert await read(waiting) == [True]
            await ask(owner, StartSharedStream(stream_id=stream_id))
        if point == "resumed":
            assert len(await bridge.ask(Do(lambda: take_turns(10)))) == 1
            await bridge.ask(Do(release_all))
        await asyncio.gather(answered(), answered())
        return stream_id

    rows = chunks(talk(story))
    assert [text for author, text, _ in rows if author == "asks-credentials"] == ["Please sign in.", "signed in"]
    assert Task.objects.count() == 1


def test_answers_behind_an_earlier_one_are_not_in_the_way(service: None, owner: Person, colleague: Person) -> None:
    async def story() -> None:
        behind = await start(owner, "asks-credentials")
        for number in range(5):
            await say(owner, behind, str(number))
        assert await read(waiting) == [False, True, True, True, True]
        await begun_to_wait(Moderator())
        await say(owner, behind, "5")
        await say(colleague, await start(colleague, "form-coroutine"), "hi")

    talk(story)
    assert waiting() == [True, True, True, True, True, True, False]
    with CaptureQueriesContext(connection) as queries:
        assert [turn.agent for turn in take_turns(1)] == ["form-coroutine"]
    search = next(query["sql"] for query in queries if "due_at" in query["sql"])
    if not on_postgres():  # PostgreSQL plans by the number of rows.
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN QUERY PLAN {search}")
            plan = str(cursor.fetchall())
        assert "agent_answer_ready" in plan
        assert "agent_answer_open" in plan


def test_the_next_answer_comes_when_the_one_before_it_is_over(service: None, owner: Person) -> None:
    """Processes of the version before end an answer without waking the next one: a look finds it."""

    async def story() -> str:
        stream_id = await start(owner, "form-coroutine")
        for text in ("one", "two", "three"):
            await say(owner, stream_id, text)
        assert await read(waiting) == [False, True, True]
        first = AgentAnswer.objects.order_by("seq")[:1]
        await bridge.ask(Do(lambda: AgentAnswer.objects.filter(pk=first.get().pk).update(due_at=None)))
        assert await read(waiting) == [True, True]
        await answered()
        return stream_id

    assert [text for author, text, _ in chunks(talk(story)) if author == "form-coroutine"] == ["two", "three"]


def test_a_look_reads_a_window_at_a_time(service: None, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.shared_streams.waiting.WINDOW", 2)

    async def story() -> None:
        for _ in range(3):
            await say(owner, await start(owner, "form-coroutine"))

    talk(story)
    bridge.do(Do(lambda: [wait(pk, 0) for pk in AgentAnswer.objects.values_list("pk", flat=True)]))
    ids = list(AgentAnswer.objects.order_by("pk").values_list("pk", flat=True))
    assert bridge.do(DoSlowly(lambda: look(0))) == (ids[:2], ids[1])
    assert bridge.do(DoSlowly(lambda: look(ids[1]))) == (ids[2:], 0)
