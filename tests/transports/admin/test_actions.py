"""Acts of operators in the admin: cancel a task, revoke a key. Each asks back and calls an operation."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from a2a.errors import TaskNotCancelable, TaskNotFound
from a2a.events import StatusChanged
from a2a.states import TaskState
from tasks_app import operations
from tasks_app.callers import access
from tasks_app.models import ApiKey, Principal
from tasks_app.operators.audit import Operator
from tests.support.operators import status, task
from tests.transports.admin.pages import act, messages_of, page

pytestmark = pytest.mark.django_db


def test_canceling_asks_back_and_then_calls_the_operation(
    admin: Client, olga: Principal, canceled: list[tuple[str, str]]
) -> None:
    one, two = task(olga), task(olga)
    asked = act(admin, "task", "cancel_selected", one.pk, two.pk, confirmed=False)
    assert "Cancel 2 tasks?" in asked.content.decode()
    assert "agent echo: 2 tasks, submitted" in asked.content.decode()
    assert one.pk in asked.content.decode()
    assert canceled == []
    done = act(admin, "task", "cancel_selected", one.pk, two.pk)
    assert sorted(canceled) == sorted([(one.pk, "ada"), (two.pk, "ada")])
    assert messages_of(done) == ["Canceled: 2 tasks."]


def test_the_page_of_a_task_has_a_button_that_cancels(
    admin: Client, olga: Principal, canceled: list[tuple[str, str]]
) -> None:
    row = task(olga)
    address = reverse("admin:tasks_app_task_cancel", args=[row.pk])
    assert f'action="{address}"' in page(admin, "task", row.pk)
    assert admin.get(address).status_code == 405
    assert canceled == []
    assert messages_of(admin.post(address, follow=True)) == ["Canceled: 1 task."]
    assert canceled == [(row.pk, "ada")]


def test_the_button_wants_a_csrf_token(olga: Principal, canceled: list[tuple[str, str]]) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    assert client.post(reverse("admin:tasks_app_task_cancel", args=[task(olga).pk])).status_code == 403
    assert canceled == []


def test_a_task_that_has_ended_has_no_button(admin: Client, olga: Principal) -> None:
    assert "td-stop" not in page(admin, "task", task(olga, StatusChanged(status=status(TaskState.COMPLETED))).pk)


def test_each_refusal_to_cancel_is_told(admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, gone, fine = task(olga), task(olga), task(olga)
    errors = {ended.pk: TaskNotCancelable(current="completed"), gone.pk: TaskNotFound()}

    def refuse(task_id: str, by: Operator) -> None:
        if task_id in errors:
            raise errors[task_id]
        if task_id == "nobody":
            raise TaskNotFound

    monkeypatch.setattr(operations, "cancel_for_operator", refuse)
    said = messages_of(act(admin, "task", "cancel_selected", gone.pk, ended.pk, fine.pk, "nobody"))
    assert said == [
        "Canceled: 1 task.",
        f"{gone.pk} and 1 more: Task not found.",
        f"{ended.pk}: Task cannot be canceled: it is completed.",
    ]
    answer = admin.post(reverse("admin:tasks_app_task_cancel", args=[ended.pk]), follow=True)
    assert messages_of(answer) == [f"{ended.pk}: Task cannot be canceled: it is completed."]


def test_revoking_asks_back_and_ends_the_key(admin: Client) -> None:
    for name in ("olga", "boris"):
        access.new_key(name, tenant="acme")
    row = ApiKey.objects.get(principal__name="olga")
    asked = act(admin, "apikey", "revoke", str(row.pk), confirmed=False)
    assert "Revoke 1 API key?" in asked.content.decode()
    assert not ApiKey.objects.exclude(revoked_at=None).exists()
    assert messages_of(act(admin, "apikey", "revoke", str(row.pk))) == ["Revoked 1 API key."]
    assert list(ApiKey.objects.exclude(revoked_at=None)) == [row]
    assert messages_of(act(admin, "apikey", "revoke", str(row.pk))) == ["All selected keys are already revoked."]
