"""Workflows for operators: the list, the page, and the act on them, by page, by command and over the API."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a.states import TaskState
from a2a.workflows import Phase, SetPhase
from tasks_app.models import Act, PhaseTask, Task, Workflow
from tasks_app.operations.workflow_acts import cancel
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused
from tasks_app.operators.roles import OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tasks_app.workflows.log import add_task, settle
from tests.conftest import Person
from tests.operations.asking import ask, sent
from tests.operators.people import program
from tests.support.commands import printed, run
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
RESULT = '[{"artifactId":"a","parts":[{"text":"<i>plan</i>"}]}]'


@pytest.fixture
def workflow(owner: Person) -> Workflow:
    ask(owner, SetPhase(workflow="<b>", phase=Phase.SPECIFICATION))
    row = Workflow.objects.get()
    for state in (TaskState.COMPLETED, None):
        task = sent(owner, "hello", "form-coroutine", return_immediately=True)
        add_task(row.pk, Phase.SPECIFICATION, task.id, "form-coroutine")
        if state:
            assert settle(PhaseTask.objects.get(task_id=task.id).pk, state, RESULT)
    return row


def test_the_list_and_the_page_show_tasks_and_results(viewer: Client, workflow: Workflow) -> None:
    assert listed(viewer, "workflow") == [workflow.pk]
    page = viewer.get(reverse("admin:tasks_app_workflow_change", args=[workflow.pk])).content.decode()
    assert "&lt;i&gt;plan&lt;/i&gt;" in page
    assert "<i>plan" not in page
    assert all(word in page for word in ("specification", "form-coroutine", "Active"))
    assert viewer.post(reverse("admin:tasks_app_workflow_changelist"), {"action": "cancel"}).status_code == 403


def test_a_damaged_workflow_is_shown_as_far_as_it_can_be_read(viewer: Client, workflow: Workflow) -> None:
    Workflow.objects.filter(pk=workflow.pk).update(agent_types="[types", configuration="{configuration")
    PhaseTask.objects.filter(artifacts=RESULT).update(artifacts="[result")
    page = viewer.get(reverse("admin:tasks_app_workflow_change", args=[workflow.pk])).content.decode()
    assert all(text in page for text in ("[types", "{configuration", "[result"))
    over_json = program(VIEWER).get(f"workflows/{workflow.pk}/").json()
    for shown in (over_json, *printed("a2a", "workflows", "show", workflow.pk)):
        assert (shown["agent_types"], shown["configuration"]) == ("[types", "{configuration")
        assert [task["artifacts"] for task in shown["tasks"]] == ["[result", None]


def test_a_workflow_is_found_by_its_name_at_each_door(viewer: Client, workflow: Workflow) -> None:
    robot, since = program(VIEWER), "2020-01-01T00:00:00Z"
    for name, ids in (("<b>", [workflow.pk]), ("b", [])):
        page = viewer.get(reverse("admin:tasks_app_workflow_changelist"), {"q": name})
        assert [row.pk for row in page.context["cl"].result_list] == ids
        assert [row["id"] for row in robot.get("workflows/", since=since, name=name).json()["results"]] == ids
        assert [line["id"] for line in printed("a2a", "workflows", "list", "--name", name)] == ids


def test_an_operator_cancels_a_workflow_with_its_tasks(admin: Client, workflow: Workflow) -> None:
    assert messages_of(act(admin, "workflow", "cancel", workflow.pk)) == ["Canceled: 1 workflow."]
    workflow.refresh_from_db()
    assert workflow.state == "canceled"
    assert sorted(Task.objects.values_list("state", flat=True)) == ["canceled", "submitted"]
    assert Act.objects.filter(verb="cancel", kind="workflow", object_id=workflow.pk).exists()
    assert messages_of(act(admin, "workflow", "cancel", workflow.pk)) == [
        f"{workflow.pk}: It cannot be done: the workflow is canceled."
    ]


def test_the_commands_do_the_same(workflow: Workflow) -> None:
    (line,) = printed("a2a", "workflows", "list", "--state", "active")
    assert (line["id"], line["owner"], line["name"], line["phase"]) == (workflow.pk, "owner", "<b>", "specification")
    (shown,) = printed("a2a", "workflows", "show", workflow.pk)
    assert [task["state"] for task in shown["tasks"]] == ["completed", None]
    assert shown["tasks"][0]["artifacts"][0]["artifactId"] == "a"
    assert printed("a2a", "workflows", "cancel", workflow.pk) == [{"id": workflow.pk, "done": "cancel"}]
    assert printed("a2a", "workflows", "list", "--state", "active") == []
    failed = run("a2a", "workflows", "cancel", workflow.pk, "missing")
    assert (failed.code, [set(line) for line in failed.lines]) == (1, [{"id", "refused"}] * 2)
    assert run("a2a", "workflows", "show", "missing").code == 1


def test_the_api_does_the_same_within_the_reach_of_its_operator(workflow: Workflow) -> None:
    robot, elsewhere = program(OPERATOR), program(OPERATOR, reach=NamedReach(tenants=()))
    (row,) = robot.get("workflows/?state=active").json()["results"]
    assert (row["id"], row["owner"]) == (workflow.pk, "owner")
    assert robot.get(f"workflows/{workflow.pk}/").json()["tasks"][0]["agent"] == "form-coroutine"
    assert elsewhere.get("workflows/").json()["results"] == []
    assert elsewhere.post(f"workflows/{workflow.pk}/cancel/").status_code == 404
    assert program(VIEWER).post(f"workflows/{workflow.pk}/cancel/").status_code == 403
    assert robot.post(f"workflows/{workflow.pk}/cancel/").json()["state"] == "canceled"
    assert robot.post(f"workflows/{workflow.pk}/cancel/").status_code == 409


def test_an_unreadable_id_is_no_workflow(db: None) -> None:
    with pytest.raises(ActRefused):
        cancel("a\0b", Operator("ada", "admin"))
