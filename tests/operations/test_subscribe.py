"""Subscribe, and the streams of sends: which frame comes first, and what follows it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from a2a.dialects import v0_3, v1_0
from a2a.dialects.json.json_1_0 import event_of, task_of
from a2a.documents import TaskDocument
from a2a.errors import TaskNotFound, UnsupportedOperation
from a2a.events import apply
from a2a.requests import SubscribeToTask
from a2a.types import Message
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import Head, ReadAsOf, ReadEvents
from tasks_app.event_log.readers import Reader, readers
from tasks_app.hints import Reached
from tasks_app.models import Event, Task
from tasks_app.operations import Follow, tasks
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask, message, sent, streamed, text_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def followed(person: Person, task_id: str, **more: object) -> Follow:
    follow = ask(person, SubscribeToTask(id=task_id, **more))
    assert isinstance(follow, Follow)
    return follow


def first(follow: Follow) -> TaskDocument:
    assert isinstance(follow.first, TaskDocument)
    return follow.first


def test_a_subscription_begins_with_the_task_as_it_is_and_stays(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    follow = followed(owner, task.id)
    assert (first(follow).seq, task_of(first(follow)), follow.stays) == (1, task, True)


def test_an_ended_task_refuses_a_subscription_except_in_the_old_dialects(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    with pytest.raises(UnsupportedOperation):
        followed(owner, task.id)
    assert task_of(first(followed(owner, task.id, closes=True))) == task


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_cursor_gets_the_task_as_of_the_cursor_even_when_it_has_ended(owner: Person, after: int) -> None:
    task = sent(owner, "hello", "echo")
    assert Task.objects.get().last_seq == 4
    found = first(followed(owner, task.id, after=after))
    assert found.seq == after
    folded = task_of(found)
    for event in bridge.do(ReadEvents(task_id=task.id, context_id=task.context_id, after=after)):
        folded = apply(folded, event_of(event))
    assert folded == task


@pytest.mark.parametrize("after", [0, 4, 5, 10**17])
def test_a_cursor_that_leaves_nothing_to_replay_is_no_cursor(owner: Person, after: int) -> None:
    ended = sent(owner, "hello", "echo")
    with pytest.raises(UnsupportedOperation):
        followed(owner, ended.id, after=after)
    waiting = sent(owner, "hello", "form-coroutine", return_immediately=True)
    assert first(followed(owner, waiting.id, after=after)).seq == 1


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has something done after a subscription has found its task, before it reads it."""

    def arrange(act: Callable[[], object]) -> None:
        find = tasks.find

        async def overtaken(*args: Any) -> Head:
            head = await find(*args)
            await DoSlowly(act)
            return head

        monkeypatch.setattr(tasks, "find", overtaken)

    return arrange


def test_an_event_written_while_a_cursor_is_looked_up_is_told_by_itself(
    owner: Person, meanwhile: Callable[[Callable[[], object]], None]
) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    meanwhile(lambda: sent(owner, message("and this", task_id=task.id), return_immediately=True))
    found = first(followed(owner, task.id, after=1))
    assert Task.objects.get().last_seq == 2
    assert (found.seq, task_of(found)) == (1, task)


@pytest.mark.parametrize("after", [None, 1])
def test_a_task_forgotten_while_it_is_looked_up_is_not_there(
    owner: Person, meanwhile: Callable[[Callable[[], object]], None], after: int | None
) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    meanwhile(lambda: Event.objects.all().delete() and Task.objects.all().delete())
    with pytest.raises(TaskNotFound):
        followed(owner, task.id, after=after)


def test_only_its_owner_can_follow_a_task(owner: Person, colleague: Person, stranger: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    for who in (colleague, stranger):
        for task_id in (task.id, "missing"):
            for after in (None, 1):
                with pytest.raises(TaskNotFound) as told:
                    followed(who, task_id, after=after, closes=True)
                assert told.value.facts == {"taskId": task_id}


def test_a_stream_of_a_send_begins_with_the_task_as_it_was_created(owner: Person) -> None:
    for agent in ("echo", "form-coroutine"):
        follow = streamed(owner, "hello", agent)
        assert (first(follow).seq, first(follow).state, follow.stays) == (1, "submitted", False)
        assert b'"artifacts"' not in first(follow).json()


def test_a_direct_reply_is_a_stream_of_one_message(owner: Person) -> None:
    follow = streamed(owner, "hello", "replies")
    assert isinstance(follow.first, Message)
    assert follow.first.text == "You said hello"


def test_the_stream_of_a_repeated_message_begins_at_its_beginning_or_its_cursor(owner: Person) -> None:
    said = message("hello", message_id="once")
    streamed(owner, said, "echo")
    assert first(streamed(owner, said, "echo")).seq == 1
    assert first(streamed(owner, said, "echo", after=3)).seq == 3
    assert first(streamed(owner, said, "echo", after=999)).seq == 4
    assert Task.objects.count() == 1


def test_the_stream_of_a_follow_up_begins_with_its_own_message(owner: Person) -> None:
    task = sent(owner, "one", "asks-quickly")
    follow = streamed(owner, message("two", task_id=task.id))
    assert first(follow).seq == Event.objects.get(kind="message").seq
    assert first(follow).state == "submitted"


def test_a_message_without_a_status_is_shown_in_no_stream(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    sent(owner, message("two", task_id=task.id), return_immediately=True)
    (event,) = bridge.do(ReadEvents(task_id=task.id, context_id=task.context_id, after=1))
    assert event.kind == "message"
    for dialect in (v1_0.DIALECT, v0_3.DIALECT):
        assert dialect.encode_frame(event, None) is None


class TestLive:
    pytestmark = pytest.mark.django_db(transaction=True)

    def test_readers_of_one_task_see_the_same_events_in_order(self, service: None, owner: Person) -> None:
        follow = streamed(owner, "hello", "chatty")
        begun = first(follow)

        async def read() -> list[tuple[int, str]]:
            seen = []
            async with readers.reader(begun.id, begun.context_id, begun.seq) as reader:
                while not seen or seen[-1][2] != "completed":
                    page = await reader.page()
                    seen += [(event.seq, event.payload, event.state) for event in page]
                    if not page:
                        await reader.news(1)
            return [(seq, payload) for seq, payload, _ in seen]

        async def both() -> list[list[tuple[int, str]]]:
            async with asyncio.timeout(PATIENCE):
                return await asyncio.gather(read(), read(), read())

        one, two, three = asyncio.run(both())
        assert one == two == three
        assert [seq for seq, _ in one] == list(range(2, len(one) + 2))
        final = bridge.do(ReadAsOf(task_id=begun.id, context_id=begun.context_id, seq=one[-1][0]))
        assert "".join(f"{number} " for number in range(200)) == text_of(task_of(final))


def test_a_hint_of_what_is_not_in_the_log_is_dropped(owner: Person) -> None:
    """Waiting for it would come back at once, again and again."""
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)

    async def look() -> int:
        reader = Reader(task.id, task.context_id, 1)
        reader.wake(Reached(task.id, 9, "completed"))
        assert await reader.news(0.1)
        assert await reader.page() == []
        assert not await reader.news(0.01)
        return reader.newest

    assert async_to_sync(look)() == 1


async def test_older_news_that_come_later_do_not_hide_newer_ones() -> None:
    """A poll that was asked before the hint came, or hints of two processes."""
    reader = Reader("t", "c", 1)
    reader.wake(Reached("t", 4, "completed"))
    reader.wake(Reached("t", 2, "working"))
    assert (reader.newest, reader.state) == (4, "completed")
    async with asyncio.timeout(30):
        await reader.quiet(60)
