"""Permissions of operators: a form changes nothing, and a viewer sees and does what is allowed."""

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse

from tasks_app.callers import access
from tasks_app.models import ApiKey, Principal
from tests.support.operators import exchange, task
from tests.transports.admin.pages import act, page

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("model", ["exchange", "task", "tenant", "principal", "apikey"])
def test_nothing_is_added_changed_or_deleted_by_a_form(admin: Client, olga: Principal, model: str) -> None:
    access.new_key("olga", tenant="acme")
    rows = {
        "exchange": exchange(olga).pk,
        "task": task(olga).pk,
        "tenant": olga.tenant_id,
        "principal": olga.pk,
        "apikey": ApiKey.objects.get().pk,
    }
    pk = rows[model]
    assert admin.get(reverse(f"admin:tasks_app_{model}_add")).status_code == 403
    assert admin.post(reverse(f"admin:tasks_app_{model}_change", args=[pk]), {"name": "x"}).status_code == 403
    assert admin.get(reverse(f"admin:tasks_app_{model}_delete", args=[pk])).status_code == 403
    assert admin.post(reverse(f"admin:tasks_app_{model}_delete", args=[pk]), {"post": "yes"}).status_code == 403
    assert admin.get(reverse(f"admin:tasks_app_{model}_change", args=[pk])).status_code == 200


def test_events_and_runs_have_no_pages_of_their_own(admin: Client) -> None:
    for model in ("event", "run", "exchangebody"):
        assert admin.get(f"/admin/tasks_app/{model}/").status_code == 404


def test_a_viewer_sees_no_buttons_and_is_refused(
    viewer: Client, olga: Principal, canceled: list[tuple[str, str]]
) -> None:
    row = task(olga)
    access.new_key("olga", tenant="acme")
    assert "td-stop" not in page(viewer, "task", row.pk)
    assert "cancel_selected" not in viewer.get(reverse("admin:tasks_app_task_changelist")).content.decode()
    assert viewer.post(reverse("admin:tasks_app_task_cancel", args=[row.pk])).status_code == 403
    assert act(viewer, "task", "cancel_selected", row.pk).status_code == 403
    assert act(viewer, "apikey", "revoke", str(ApiKey.objects.get().pk)).status_code == 403
    assert canceled == []
    assert ApiKey.objects.get().revoked_at is None


def test_a_viewer_of_tasks_alone_sees_no_exchanges(olga: Principal) -> None:
    user = User.objects.create_user("tom", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename="view_task"))
    client = Client()
    client.force_login(user)
    call = exchange(olga)
    row = task(olga, exchange_id=call.pk)
    assert call.pk not in page(client, "task", row.pk)
    assert client.get(reverse("admin:tasks_app_exchange_change", args=[call.pk])).status_code == 403
    assert client.get(reverse("admin:tasks_app_exchange_changelist")).status_code == 403


def test_a_visitor_without_a_login_is_sent_to_log_in(client: Client, olga: Principal) -> None:
    row = task(olga)
    for address in (
        reverse("admin:tasks_app_task_change", args=[row.pk]),
        reverse("admin:tasks_app_exchange_changelist"),
    ):
        assert client.get(address).status_code == 302
    assert client.post(reverse("admin:tasks_app_task_cancel", args=[row.pk])).status_code == 302


def test_the_digest_of_a_key_is_never_shown(admin: Client) -> None:
    access.new_key("olga", tenant="acme")
    row = ApiKey.objects.get()
    assert row.digest not in page(admin, "apikey", str(row.pk))
    assert row.digest not in admin.get(reverse("admin:tasks_app_apikey_changelist")).content.decode()
