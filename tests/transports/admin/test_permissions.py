"""Permissions of operators: a form changes nothing, and a viewer sees and does what is allowed."""

import importlib
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management.sql import emit_post_migrate_signal
from django.db import connection
from django.test import Client
from django.urls import reverse

from tasks_app.callers import access
from tasks_app.models import ApiKey, OperatorReach, Principal
from tests.support.operators import exchange, task
from tests.transports.admin.pages import act, page

pytestmark = pytest.mark.django_db
RENAMING = importlib.import_module("tasks_app.migrations.0030_webhooks_by_name")
VERBS = ("add", "change", "delete", "view")


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
    # A key is made by a page of its own, and no form edits it.
    assert admin.get(reverse(f"admin:tasks_app_{model}_add")).status_code == (200 if model == "apikey" else 403)
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
    OperatorReach.objects.create(user=user, all_tenants=True)
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


@pytest.fixture
def _clear_types() -> Iterator[None]:
    """Clear Django's cache of content types after a test that renames or deletes them."""
    yield
    ContentType.objects.clear_cache()


def codenames() -> list[str]:
    """Return the codenames of the permissions of webhooks, under either name."""
    rows = Permission.objects.filter(codename__regex="webhook|pushconfig")
    return sorted(rows.values_list("codename", flat=True))


def rename(function: str) -> None:
    """Rename permissions as the migration does, and let Django create those that are missing."""
    getattr(RENAMING, function)(apps, SimpleNamespace(connection=connection))
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")


@pytest.mark.storage
@pytest.mark.usefixtures("_clear_types")
def test_operators_keep_their_permissions_of_webhooks_under_the_new_name() -> None:
    operators, tom = Group.objects.create(name="operators"), User.objects.create_user("tom", is_staff=True)
    RENAMING.restore_permissions(apps, SimpleNamespace(connection=connection))
    assert codenames() == [f"{verb}_pushconfig" for verb in VERBS]
    operators.permissions.set(Permission.objects.filter(codename="view_pushconfig"))
    tom.user_permissions.set(Permission.objects.filter(codename="change_pushconfig"))
    tom.groups.add(operators)
    rename("rename_permissions")
    assert codenames() == [f"{verb}_webhook" for verb in VERBS]
    assert tom.get_all_permissions() == {"tasks_app.view_webhook", "tasks_app.change_webhook"}
    assert not ContentType.objects.filter(app_label="tasks_app", model="pushconfig").exists()


@pytest.mark.storage
@pytest.mark.usefixtures("_clear_types")
def test_operators_get_permissions_that_exist_under_the_new_name() -> None:
    """A process of the version before that migrates after the migration creates its permissions anew."""
    kind = ContentType.objects.create(app_label="tasks_app", model="pushconfig")
    former = Permission.objects.create(content_type=kind, codename="view_pushconfig", name="Can view webhook")
    tom = User.objects.create_user("tom", is_staff=True)
    tom.user_permissions.set([former])
    operators = Group.objects.create(name="operators")
    operators.permissions.set([former])
    rename("rename_permissions")
    assert tom.has_perm("tasks_app.view_webhook")
    assert operators.permissions.filter(codename="view_webhook").exists()
    assert codenames() == sorted([*(f"{verb}_webhook" for verb in VERBS), "view_pushconfig"])


@pytest.mark.storage
@pytest.mark.usefixtures("_clear_types")
@pytest.mark.parametrize("function", ["rename_permissions", "restore_permissions"])
def test_a_new_database_has_no_permissions_to_rename(function: str) -> None:
    ContentType.objects.filter(app_label="tasks_app").delete()
    ContentType.objects.clear_cache()
    rename(function)
    assert codenames() == [f"{verb}_webhook" for verb in VERBS]
