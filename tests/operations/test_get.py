"""Get: a task as it is now, to its owner alone."""

import pytest
from msgspec.structs import replace

from a2a.errors import TaskNotFound
from a2a.requests import GetTask
from tests.conftest import Person
from tests.operations.asking import ask, message, send, sent, shown

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def test_the_owner_gets_the_task_as_it_was_answered(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    assert shown(ask(owner, GetTask(id=task.id))) == task


def test_a_task_changes_for_its_reader_as_its_log_grows(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    for text in ("two", "three"):
        sent(owner, message(text, task_id=task.id), return_immediately=True)
    found = shown(ask(owner, GetTask(id=task.id)))
    assert [said.text for said in found.history] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("length", "texts"), [(0, []), (1, ["three"]), (2, ["two", "three"]), (9, ["one", "two", "three"])]
)
def test_a_history_is_cut_to_its_newest_messages(owner: Person, length: int, texts: list[str]) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    for text in ("two", "three"):
        sent(owner, message(text, task_id=task.id), return_immediately=True)
    answer = ask(owner, GetTask(id=task.id, history_length=length))
    assert answer.history_length == length
    wire = answer.task.json(length)
    assert [text for text in ("one", "two", "three") if f'"{text}"'.encode() in wire] == texts
    assert (b'"history"' in wire) == bool(texts)


def test_a_get_without_history_reads_none(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    answer = ask(owner, GetTask(id=task.id, history_length=0))
    assert answer.task.history is None
    assert answer.task == replace(ask(owner, GetTask(id=task.id)).task, history=None)


def test_a_send_that_wants_no_history_is_answered_without_reading_it(owner: Person) -> None:
    said = message("hello")
    send(owner, said, "echo", history_length=0)
    again = send(owner, said, "echo", history_length=0)
    assert again.task == replace(send(owner, said, "echo").task, history=None)


def test_a_foreign_and_a_missing_task_are_not_told_apart(owner: Person, colleague: Person, stranger: Person) -> None:
    task = sent(owner, "hello", "echo")
    for who in (colleague, stranger):
        for task_id in (task.id, "0193-made-up", ""):
            with pytest.raises(TaskNotFound) as told:
                ask(who, GetTask(id=task_id))
            assert told.value.facts == {"taskId": task_id}


def test_a_foreign_tenant_hides_the_callers_own_task(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    assert shown(ask(owner, GetTask(id=task.id, tenant="home"))) == task
    with pytest.raises(TaskNotFound):
        ask(owner, GetTask(id=task.id, tenant="abroad"))


def test_a_task_is_got_at_the_address_of_its_own_agent_only(owner: Person) -> None:
    task = sent(owner, "hello", "echo")
    assert shown(ask(owner, GetTask(id=task.id), agent="echo")) == task
    with pytest.raises(TaskNotFound):
        ask(owner, GetTask(id=task.id), agent="story")


@pytest.mark.parametrize("tail", [":1:1", "' or '1'='1", "%"])
def test_an_id_that_imitates_the_inner_form_of_ownership_finds_nothing(
    owner: Person, stranger: Person, tail: str
) -> None:
    task = sent(owner, "hello", "echo")
    with pytest.raises(TaskNotFound):
        ask(stranger, GetTask(id=f"{task.id}{tail}"))
