"""`manage.py tasks`: shows, lists and cancels tasks."""

from datetime import timedelta

import pytest
from django.utils import timezone

from a2a.errors import TaskNotFound
from a2a.events import StatusChanged
from a2a.money import MICRO
from a2a.states import TaskState
from tasks_app import operations
from tasks_app.ids import uuid7_at
from tasks_app.models import Principal, Run
from tasks_app.operators.audit import Operator
from tasks_app.operators.roles import VIEWER
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.support.operators import NOW, status, task

pytestmark = pytest.mark.django_db


def test_the_command_shows_and_lists_tasks(olga: Principal) -> None:
    row = task(olga, StatusChanged(status=status(TaskState.FAILED, "no")), context_id="chat")
    Run.objects.create(task=row, fence=1, worker="w", ended_at=NOW, outcome="failed", traceback="boom")
    task(olga, agent="story")
    (shown,) = printed("tasks", "show", row.pk)
    assert shown["owner"] == "olga"
    assert shown["task"]["status"]["state"] == "TASK_STATE_FAILED"
    assert [event["seq"] for event in shown["events"]] == [1, 2]
    assert shown["runs"][0]["traceback"] == "boom"
    assert [line["id"] for line in printed("tasks", "show", "chat")] == [row.pk]
    assert [line["id"] for line in printed("tasks", "list", "--state", "failed")] == [row.pk]
    assert [line["agent"] for line in printed("tasks", "list", "--agent", "story")] == ["story"]
    assert len(printed("tasks", "list", "--limit", "1")) == 1
    old = task(olga, id=uuid7_at(timezone.now() - timedelta(days=3)))
    assert old.pk not in {line["id"] for line in printed("tasks", "list", "--since", "1d")}
    assert [line["id"] for line in printed("tasks", "list", "--since", "7d")][-1] == old.pk
    assert printed("tasks", "list", "--state", "rejected") == []
    sentence = "There is no task with the id, context id or reference 'nobody', or it was deleted because of its age."
    assert run("tasks", "show", "nobody") == ([], sentence, 1)


def test_money_of_a_task_is_printed_in_dollars_as_of_a_budget(olga: Principal) -> None:
    row = task(olga, budget=MICRO, spent=MICRO // 4 + 1, reserved=0)
    money = {"budget": "1.00", "share": None, "reserved": "0.00", "spent": "0.250001"}
    robot = program(VIEWER)
    for shown in (
        *printed("tasks", "list"),
        *printed("tasks", "show", row.pk),
        *robot.get("tasks/").json()["results"],
        robot.get(f"tasks/{row.pk}/").json(),
    ):
        assert {name: shown[name] for name in money} == money


def test_the_command_cancels_through_the_operation(olga: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def cancel(task_id: str, by: Operator) -> None:
        if task_id == "nobody":
            raise TaskNotFound
        calls.append((task_id, by.name))

    monkeypatch.setattr(operations, "cancel_for_operator", cancel)
    lines, sentence, code = run("tasks", "cancel", "a", "nobody", "--operator", "ada")
    assert calls == [("a", "ada")]
    assert [line["canceled"] for line in lines] == [True, False]
    assert lines[1]["reason"] == "TASK_NOT_FOUND"
    assert (sentence, code) == ("1 of 2 not canceled.", 1)
