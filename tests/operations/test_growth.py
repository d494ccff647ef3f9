"""The limits of a task: characters, events and messages."""

from typing import Any

import pytest

from a2a.errors import UnsupportedOperation
from a2a.types import Part
from tasks_app.models import Event, Task
from tests.conftest import Person
from tests.operations.asking import message, send, sent, text_of
from tests.operations.rows import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def ask_for_input(person: Person) -> Task:
    """Return a task that waits for an answer."""
    return Task.objects.get(pk=sent(person, "hello", "asks").id)


def reason(person: Person, task: Task, text: str = "more") -> str:
    with pytest.raises(UnsupportedOperation) as refused:
        send(person, message(text, task_id=task.pk), return_immediately=True)
    return refused.value.facts["detail"]


def test_a_task_knows_its_size_and_the_messages_of_its_caller(owner: Person) -> None:
    task = ask_for_input(owner)
    sent(owner, message("the first one", task_id=task.pk))
    task.refresh_from_db()
    assert task.state == "completed"
    assert task.size == sum(Event.objects.filter(task=task).values_list("size", flat=True)) > 500
    assert task.messages == 2


def test_a_task_takes_so_many_messages(owner: Person, settings: Any) -> None:
    task = ask_for_input(owner)
    settings.A2A_TASK_MESSAGES = 1
    assert reason(owner, task) == "a task may have 1 messages, and with this message it would have 2: begin another"
    assert Event.objects.filter(task=task).count() == task.last_seq, "what is refused leaves nothing"
    settings.A2A_TASK_MESSAGES = 2
    assert text_of(sent(owner, message("this", task_id=task.pk))) != ""


def test_a_task_takes_so_many_characters_and_events(owner: Person, settings: Any) -> None:
    task = ask_for_input(owner)
    settings.A2A_TASK_CHARACTERS = task.size + 1_000
    assert "characters" in reason(owner, task, "x" * 1_000)
    settings.A2A_TASK_EVENTS = task.last_seq
    assert "events" in reason(owner, task)


def test_messages_that_come_at_once_stay_within_the_limit(owner: Person, settings: Any) -> None:
    task = sent(owner, "hello", "waits", return_immediately=True)
    settings.A2A_TASK_MESSAGES = 4
    results = together(8, lambda place: send(owner, message(f"{place}", task_id=task.id), return_immediately=True))
    refused = [result for result in results if isinstance(result, UnsupportedOperation)]
    assert len(refused) == 5, results
    assert Task.objects.get(pk=task.id).messages == 4


@pytest.mark.parametrize("agent", ["fills", "fills-quickly"])
@pytest.mark.parametrize("kind", ["data", "metadata", "status"])
def test_all_that_an_agent_writes_counts(owner: Person, settings: Any, agent: str, kind: str) -> None:
    settings.A2A_TASK_CHARACTERS = 40_000
    task = sent(owner, kind, agent)
    assert task.status.state == "failed"
    assert task.status.message is not None
    assert task.status.message.text == "The agent has written more than a task may hold: 40,000 characters."
    assert 30_000 < Task.objects.get(pk=task.id).size < 60_000
    settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_EVENTS = 20_000_000, 12
    task = sent(owner, kind, agent)
    assert task.status.message is not None
    assert task.status.message.text == "The agent has written more than a task may hold: 12 events."
    assert Task.objects.get(pk=task.id).last_seq == 13, "the failure comes on top"


def test_a_run_that_writes_more_fails_with_the_limit(owner: Person, settings: Any) -> None:
    settings.A2A_TASK_CHARACTERS = 40_000
    said = message(parts=(Part(data={"chunks": 1_000, "size": 100}),))
    task = sent(owner, said, "writes")
    assert task.status.state == "failed"
    assert task.status.message is not None
    assert task.status.message.text == "The agent has written more than a task may hold: 40,000 characters."
    assert Task.objects.get(pk=task.id).size < 60_000
    settings.A2A_TASK_CHARACTERS, settings.A2A_TASK_EVENTS = 20_000_000, 12
    task = sent(owner, message(parts=(Part(data={"chunks": 1_000, "size": 20_000}),)), "writes")
    assert task.status.message is not None
    assert task.status.message.text == "The agent has written more than a task may hold: 12 events."
