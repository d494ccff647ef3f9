"""Messages that a keeper or a moderator sends while the database is away: they are sent again."""

from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.db import OperationalError

from tasks_app.batches.rows import take_turns
from tasks_app.database.locks import LockRefused
from tasks_app.event_log import Create
from tasks_app.models import AgentAnswer, Batch, BatchItem, Task
from tasks_app.operations.batch_steps import advance
from tasks_app.operations.moderator import Moderator
from tests.conftest import Person
from tests.operations.batching import ended, execute, results
from tests.operations.conversations import answered, chunks, read, say, settled, start, talk

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("service"),
    pytest.mark.parametrize(
        "error",
        [
            OperationalError("the server is starting up"),
            LockRefused("late"),
        ],
        ids=lambda error: type(error).__name__,
    ),
    pytest.mark.parametrize("after", [False, True], ids=["before", "after"]),
]


def refuse(patch: pytest.MonkeyPatch, error: Exception, *, after: bool) -> None:
    """Refuse to store any task, or store it and lose the answer."""
    do = Create.do_many.__func__  # type: ignore[attr-defined]

    def do_many(cls: Any, items: Any) -> Any:
        if after:
            do(cls, items)
        return [error] * len(items)

    patch.setattr(Create, "do_many", classmethod(do_many))


def test_no_item_of_a_batch_fails_for_it(
    owner: Person, monkeypatch: pytest.MonkeyPatch, error: Exception, after: bool
) -> None:
    batch = execute(owner, "a", "b")
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    with monkeypatch.context() as patch:
        refuse(patch, error, after=after)
        step = async_to_sync(advance)(turn)
        assert step is not None
        assert step.pause > 0
        assert not BatchItem.objects.exclude(state="").exists()
    assert [result["output"] for result in results(ended(owner, batch.id))] == [["a"], ["b"]]
    assert Task.objects.filter(agent="form-coroutine").count() == 2


def test_no_answer_in_a_shared_stream_ends_for_it(
    owner: Person, monkeypatch: pytest.MonkeyPatch, error: Exception, after: bool
) -> None:
    async def story() -> str:
        stream_id = await start(owner, "form-coroutine")
        await say(owner, stream_id, "hi")
        with monkeypatch.context() as patch:
            refuse(patch, error, after=after)
            await settled(Moderator())
            assert await read(AgentAnswer.objects.filter(due_at__isnull=False).exists)
        await answered()
        return stream_id

    assert chunks(talk(story))[1:] == [("form-coroutine", "hi", True)]
    assert Task.objects.count() == 1
