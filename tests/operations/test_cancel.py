"""Cancel: the row changes first, then its worker gets the hint."""

from typing import Any

import pytest

from a2a.errors import TaskNotCancelable, TaskNotFound
from a2a.requests import CancelTask, GetTask
from tasks_app.database.bridge import bridge
from tasks_app.event_log import Append
from tasks_app.models import Act, Event, Run, Task
from tasks_app.operations import cancel_for_operator
from tasks_app.operators.audit import ADMIN, Operator
from tests.conftest import Person, until
from tests.operations.asking import ask, message, sent, shown
from tests.support.agents import MEMORY

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ADA = Operator(name="ada", door=ADMIN)


def test_a_waiting_task_is_canceled_at_once(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    assert shown(ask(owner, CancelTask(id=task.id))).status.state == "canceled"
    assert shown(ask(owner, GetTask(id=task.id))).status.state == "canceled"


def test_a_task_that_asks_is_canceled_and_keeps_its_question(owner: Person) -> None:
    task = sent(owner, "hello", "asks-quickly")
    canceled = shown(ask(owner, CancelTask(id=task.id)))
    assert canceled.status.state == "canceled"
    assert canceled.history[-1].text == "Which one?"


@pytest.mark.parametrize("agent", ["echo", "quick-raises"])
def test_a_task_that_has_ended_cannot_be_canceled(owner: Person, agent: str) -> None:
    task = sent(owner, "hello", agent)
    before = Event.objects.count()
    with pytest.raises(TaskNotCancelable) as told:
        ask(owner, CancelTask(id=task.id))
    assert told.value.facts == {"taskId": task.id, "current": task.status.state.value, "target": "canceled"}
    assert Event.objects.count() == before


def test_a_second_cancel_is_refused_and_leaves_no_second_event(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    ask(owner, CancelTask(id=task.id))
    with pytest.raises(TaskNotCancelable):
        ask(owner, CancelTask(id=task.id))
    assert Event.objects.filter(task_id=task.id, state="canceled").count() == 1


def test_only_its_owner_can_cancel_a_task(owner: Person, colleague: Person, stranger: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    for who in (colleague, stranger):
        for task_id in (task.id, "missing"):
            with pytest.raises(TaskNotFound) as told:
                ask(who, CancelTask(id=task_id))
            assert told.value.facts == {"taskId": task_id}
    with pytest.raises(TaskNotFound):
        ask(owner, CancelTask(id=task.id, tenant="abroad"))
    with pytest.raises(TaskNotFound):
        ask(owner, CancelTask(id=task.id), agent="echo")
    assert Task.objects.get().state == "submitted"


def test_an_operator_cancels_in_the_owners_place_and_is_named(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    cancel_for_operator(task.id, ADA)
    assert Event.objects.get(state="canceled").actor == "operator:ada"
    (act,) = Act.objects.values_list("operator", "verb", "kind", "object_id", "before", "after")
    assert act == ("ada", "cancel", "task", task.id, '{"state":"submitted"}', '{"state":"canceled"}')
    with pytest.raises(TaskNotCancelable):
        cancel_for_operator(task.id, ADA)
    with pytest.raises(TaskNotFound):
        cancel_for_operator("missing", ADA)


def test_the_act_is_stored_with_the_cancellation(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    task, do = sent(owner, "hello", "form-coroutine", return_immediately=True), bridge.do

    def die_after_the_append(item: Any, *more: Any) -> Any:
        result = do(item, *more)
        if isinstance(item, Append):
            raise ZeroDivisionError
        return result

    monkeypatch.setattr(bridge, "do", die_after_the_append)
    with pytest.raises(ZeroDivisionError):
        cancel_for_operator(task.id, ADA)
    assert Task.objects.get().state == "canceled"
    assert list(Act.objects.values_list("verb", "kind", "object_id", "tenant")) == [
        ("cancel", "task", task.id, owner.caller.tenant_id)
    ]


class TestAtWork:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.mark.parametrize("agent", ["waits", "waits-in-a-thread"])
    def test_an_agent_at_work_is_stopped(self, service: None, owner: Person, agent: str) -> None:
        task = sent(owner, "hello", agent, return_immediately=True)
        until(lambda: Event.objects.filter(task_id=task.id, kind="artifactUpdate").exists(), "the agent is at work")
        assert shown(ask(owner, CancelTask(id=task.id))).status.state == "canceled"
        until(lambda: MEMORY.get(task.id) == "stopped", "the agent is stopped")
        assert Task.objects.get().state == "canceled"
        assert Event.objects.filter(task_id=task.id).latest("seq").state == "canceled"
        assert not Run.objects.filter(outcome="completed").exists()

    def test_a_message_to_a_task_that_was_canceled_is_refused(self, service: None, owner: Person) -> None:
        from a2a.errors import UnsupportedOperation

        task = sent(owner, "hello", "waits", return_immediately=True)
        ask(owner, CancelTask(id=task.id))
        with pytest.raises(UnsupportedOperation):
            sent(owner, message("again", task_id=task.id))
