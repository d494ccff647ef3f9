"""Money whose commits end in doubt: the connection is lost just before a commit, or just after it."""

from typing import Any

import pytest
from django.db import OperationalError

from a2a.answers import Answer
from a2a.errors import Error
from a2a.requests import CancelTask
from a2a.states import TaskState
from a2a.types import Message
from tasks_app.event_log import (
    Append,
    CreateCharged,
    CreateSettled,
    Release,
    Reserve,
    ReserveAgain,
    Spend,
    create_many,
)
from tasks_app.models import Task
from tests.conftest import Person, until
from tests.operations.asking import ask, message, send
from tests.operations.money import amounts, limit
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
KINDS = (Append, CreateCharged, CreateSettled, Release, Reserve, ReserveAgain, Spend)
MESSAGES = (
    ("0.5", "priced-quick"),
    ("0.125 reply", "priced-quick"),
    ("0.25", "priced"),
    ("0.5 ask", "priced-quick"),
    ("0.25 ask", "priced"),
)
ANSWER = "0.125"


def lose(monkeypatch: pytest.MonkeyPatch, kind: Any, *, after: bool) -> None:
    """Lose the connection at the first commit of a kind of work items."""
    do, commits = kind.do_many.__func__, list[Any]()

    def do_many(cls: Any, items: Any) -> Any:
        is_lost = not commits
        commits.append(items)
        results = None if is_lost and not after else do(cls, items)
        if is_lost:
            raise OperationalError("the connection was lost")
        return results

    monkeypatch.setattr(kind, "do_many", classmethod(do_many))


def send_until_answered(who: Person, said: Message, agent: str | None = None) -> Answer:
    """Send a message, and once more if the answer is an error, as a client does."""
    try:
        return send(who, said, agent)
    except (Error, OperationalError):
        return send(who, said, agent)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_connection_that_is_lost_at_a_commit_changes_no_sum(
    owner: Person, monkeypatch: pytest.MonkeyPatch, kind: type, after: bool
) -> None:
    budget = limit(owner, 20)
    lose(monkeypatch, kind, after=after)
    for text, agent in MESSAGES:
        answer = send_until_answered(owner, message(text), agent)
        if answer.task is not None and answer.task.state == TaskState.INPUT_REQUIRED:
            send_until_answered(owner, message(ANSWER, task_id=answer.task.id))
    unfinished = Task.objects.filter(state__in=[TaskState.SUBMITTED, TaskState.WORKING])
    until(lambda: not unfinished.exists(), "all have ended")
    for task_id in Task.objects.filter(state=TaskState.INPUT_REQUIRED).values_list("pk", flat=True):
        ask(owner, CancelTask(id=task_id))
    until(lambda: amounts(budget)[0] == 0, "the reservations are given back")
    assert amounts(budget) == (0, 1.875), "the sum of the messages, with an answer to each question"


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_run_whose_message_another_call_has_stored_is_charged_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    """The other call, of another process, stores its task while the agent runs. Then the connection is lost."""
    budget, said = limit(owner, 20), message("0.5")
    do, rivals = CreateSettled.do_many.__func__, list[Any]()  # type: ignore[attr-defined]

    def do_many(cls: Any, items: Any) -> Any:
        if not rivals:
            rivals.append(creation(owner, said.message_id))
            rivals[0].key.fingerprint = items[0].key.fingerprint
            assert create_many(rivals) == [None]
        return do(cls, items)

    monkeypatch.setattr(CreateSettled, "do_many", classmethod(do_many))
    lose(monkeypatch, CreateSettled, after=after)
    answer = send(owner, said, "priced-quick", return_immediately=True)
    assert answer.task is not None
    assert answer.task.id == rivals[0].task.id
    until(lambda: amounts(budget)[0] == 0, "the reservation is given back")
    assert amounts(budget) == (0, 0.5)
