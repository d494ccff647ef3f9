"""The acts of operators stay: they cannot be changed or deleted, and they outlive their users."""

import importlib
from typing import Any

import orjson
import pytest
from django.apps import apps
from django.contrib.admin.models import ADDITION, CHANGE, LogEntry
from django.contrib.auth.models import Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, ApiKey, OperatorReach, Principal, Task, Tenant
from tasks_app.operators.audit import COMMAND, Change, Operator, record_acts
from tasks_app.operators.roles import ADMINISTRATOR, AUDITOR
from tests.operators.people import program
from tests.support.commands import printed
from tests.support.operators import task
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ACTS = reverse("admin:tasks_app_act_changelist")


@pytest.fixture
def key() -> ApiKey:
    acme = Principal.objects.create(tenant=Tenant.objects.create(name="acme"), name="olga")
    return ApiKey.objects.create(principal=acme, name="k", prefix="tdk_", digest="d")


def acts(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "acts", *words)


def revoked(admin: Client, key: ApiKey) -> Act:
    form = {"action": "revoke", "_selected_action": [key.pk], "post": "yes", "reason": "it leaked"}
    admin.post(reverse("admin:tasks_app_apikey_changelist"), form)
    return Act.objects.get(verb="revoke")


def test_an_act_outlives_its_user(admin: Client, key: ApiKey) -> None:
    act = revoked(admin, key)
    User.objects.all().delete()
    (line,) = acts("--kind", "API key", "--id", str(key.pk))
    assert (line["operator"], line["door"], line["verb"], line["reason"]) == ("ada", "admin", "revoke", "it leaked")
    assert (line["before"]["revoked_at"], line["name"]) == (None, act.name)
    assert line["after"]["revoked_at"]


def test_each_door_tells_the_tenant_the_address_and_the_trace(admin: Client, key: ApiKey) -> None:
    form = {"action": "revoke", "_selected_action": [key.pk], "post": "yes"}
    path, trace = reverse("admin:tasks_app_apikey_changelist"), "0af7651916cd43dd8448eb211c80319c"
    admin.post(path, form, headers={"traceparent": f"00-{trace}-b7ad6b7169203331-01"})
    wish = {"tenant": key.principal.tenant.name, "peer": "127.0.0.1", "trace": trace}
    (line,) = acts("--verb", "revoke")
    (shown,) = program(AUDITOR).get("acts/", verb="revoke").json()["results"]
    (row,) = [row for row in printed("a2a", "audit", "export") if row.get("verb") == "revoke"]
    for each in (line, shown, row):
        assert each | wish == each
    page = admin.get(reverse("admin:tasks_app_act_change", args=[line["id"]])).content.decode()
    assert all(text in page for text in wish.values())


def test_a_kind_or_a_verb_that_no_act_has_is_refused(admin: Client, key: ApiKey) -> None:
    assert acts("--verb", "revoke") == [], "there are no acts at all"
    revoked(admin, key)
    with pytest.raises(CommandError, match=r"No act has the kind 'key': there are API key"):
        acts("--kind", "key")
    with pytest.raises(CommandError, match=r"No act has the verb 'revoked': there are .*revoke"):
        acts("--verb", "revoked")
    assert acts("--kind", "budget") == [], "acts can have this kind"
    assert len(acts("--kind", "API key", "--verb", "revoke")) == 1
    auditor = program(AUDITOR)
    answer = auditor.get("acts/", kind="key")
    assert (answer.status_code, "there are API key" in str(answer.json()["errors"])) == (400, True)
    assert auditor.get("acts/", kind="rows").json()["results"] == []


def test_no_page_and_no_row_changes_or_deletes_an_act(admin: Client, key: ApiKey) -> None:
    act = revoked(admin, key)
    for view, arguments in (("delete", [act.pk]), ("add", [])):
        assert admin.get(reverse(f"admin:tasks_app_act_{view}", args=arguments)).status_code == 403
        assert admin.post(reverse(f"admin:tasks_app_act_{view}", args=arguments), {"post": "yes"}).status_code == 403
    change = reverse("admin:tasks_app_act_change", args=[act.pk])
    assert admin.post(change, {"operator": "eve"}).status_code == 403
    shown = admin.get(change).content.decode()
    assert "it leaked" in shown
    assert "revoked_at" in shown
    admin.post(ACTS, {"action": "delete_selected", "_selected_action": [act.pk], "post": "yes"})
    with pytest.raises(TypeError):
        Act.objects.update(operator="eve")
    with pytest.raises(TypeError):
        Act.objects.all().delete()
    with pytest.raises(TypeError):
        act.delete()
    assert Act.objects.get().operator == "ada"


def test_a_user_is_switched_off_and_never_deleted(admin: Client) -> None:
    otto = User.objects.create_user("otto", is_staff=True)
    assert admin.post(reverse("admin:auth_user_delete", args=[otto.pk]), {"post": "yes"}).status_code == 403
    users = reverse("admin:auth_user_changelist")
    assert "delete_selected" not in admin.get(users).content.decode()
    admin.post(users, {"action": "delete_selected", "_selected_action": [otto.pk], "post": "yes"})
    form = {"username": "otto", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_staff": "on"}
    form |= {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    page = reverse("admin:auth_user_change", args=[otto.pk])
    assert admin.post(page, form | form_digest(admin, page)).status_code == 302
    otto.refresh_from_db()
    assert not otto.is_active
    (act,) = Act.objects.all()
    assert (act.operator, act.verb, act.kind, act.name) == ("ada", "change", "user", "otto")
    assert "Active" in act.after


def test_users_and_groups_are_made_and_deleted_in_view_of_all(admin: Client) -> None:
    admin.post(reverse("admin:auth_group_add"), {"name": "viewers"})
    group = Group.objects.latest("pk")
    admin.post(reverse("admin:auth_group_delete", args=[group.pk]), {"post": "yes"})
    assert list(Act.objects.order_by("pk").values_list("verb", "kind", "name")) == [
        ("make", "group", "viewers"),
        ("delete", "group", "viewers"),
    ]
    assert not LogEntry.objects.exists()


@pytest.mark.parametrize(
    ("reach", "sentence"),
    [
        ({"all_tenants": "on", "tenants": "1"}, "all tenants or those that you name"),
        ({"agents": "echo, story"}, "An agent cannot be called &#x27;echo,&#x27;"),
    ],
)
def test_the_form_refuses_a_reach_that_commands_refuse(admin: Client, reach: dict[str, str], sentence: str) -> None:
    otto = User.objects.create_user("otto", is_staff=True)
    Tenant.objects.create(pk=1, name="acme")
    form = {"username": "otto", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_staff": "on"}
    form |= {"reach-TOTAL_FORMS": "1", "reach-INITIAL_FORMS": "0"}
    form |= {f"reach-0-{name}": value for name, value in reach.items()}
    page = reverse("admin:auth_user_change", args=[otto.pk])
    answer = admin.post(page, form | form_digest(admin, page))
    assert (answer.status_code, sentence in answer.content.decode()) == (200, True)
    assert not OperatorReach.objects.exists()
    assert not Act.objects.exists()


def test_the_act_of_a_form_has_the_rights_before_and_after(admin: Client) -> None:
    otto, acme = User.objects.create_user("otto", is_staff=True), Tenant.objects.create(name="acme")
    otto.groups.add(Group.objects.get(name=AUDITOR))
    form = {"username": "otto", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_staff": "on"}
    form |= {"is_active": "on", "groups": [Group.objects.get(name=ADMINISTRATOR).pk]}
    form |= {"reach-TOTAL_FORMS": "1", "reach-INITIAL_FORMS": "0", "reach-0-tenants": [acme.pk]}
    page = reverse("admin:auth_user_change", args=[otto.pk])
    assert admin.post(page, form | form_digest(admin, page)).status_code == 302
    act = Act.objects.get()
    before, after = orjson.loads(act.before), orjson.loads(act.after)
    assert before == {"groups": [AUDITOR], "tenants": None, "all_tenants": None, "agents": None}
    assert (after["groups"], after["tenants"], after["all_tenants"]) == ([ADMINISTRATOR], ["acme"], False)
    group, see = Group.objects.create(name="night"), Permission.objects.get(codename="view_task")
    page = reverse("admin:auth_group_change", args=[group.pk])
    admin.post(page, {"name": "day", "permissions": [see.pk]} | form_digest(admin, page))
    act = Act.objects.latest("pk")
    assert orjson.loads(act.before) == {"name": "night", "permissions": []}
    assert orjson.loads(act.after) | {"changes": 0} == {
        "name": "day",
        "permissions": ["tasks_app.view_task"],
        "changes": 0,
    }


def test_an_operator_keeps_the_name_by_which_acts_tell_them(admin: Client) -> None:
    otto = User.objects.create_user("otto", is_staff=True)
    form = {"username": "eve", "date_joined_0": "2026-01-01", "date_joined_1": "00:00:00", "is_active": "on"}
    form |= {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    page = reverse("admin:auth_user_change", args=[otto.pk])
    assert 'name="username"' not in admin.get(page).content.decode()
    assert admin.post(page, form | form_digest(admin, page)).status_code == 302
    assert User.objects.get(pk=otto.pk).username == "otto"


def test_no_form_changes_when_an_operator_came_or_logged_in(admin: Client) -> None:
    otto = User.objects.create_user("otto", is_staff=True)
    times = {"date_joined_0": "2001-01-01", "date_joined_1": "00:00:00"}
    times |= {"last_login_0": "2001-01-01", "last_login_1": "00:00:00"}
    form = times | {"is_active": "on", "reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
    page = reverse("admin:auth_user_change", args=[otto.pk])
    assert admin.post(page, form | form_digest(admin, page)).status_code == 302
    joined = otto.date_joined
    otto.refresh_from_db()
    assert (otto.date_joined, otto.last_login, otto.is_staff) == (joined, None, False)


def test_the_page_of_a_row_leads_to_what_was_done_to_it(admin: Client, key: ApiKey) -> None:
    row, other = task(key.principal), task(key.principal)
    by = Operator(name="<b>otto</b>", door=COMMAND)
    record_acts(by, "cancel", Change(row), Change(other))
    shown = admin.get(reverse("admin:tasks_app_task_history", args=[row.pk]), follow=True)
    assert [act.object_id for act in shown.context["cl"].result_list] == [row.pk]
    assert "&lt;b&gt;otto&lt;/b&gt;" in shown.content.decode()
    page = admin.get(reverse("admin:tasks_app_task_change", args=[row.pk])).content.decode()
    assert f'href="{ACTS}?q={row.pk}"' in page
    found = admin.get(ACTS, {"operator": "nobody"}).context["cl"]
    assert (found.result_count, found.total.exact) == (0, True)


def test_acts_are_printed_by_what_is_asked_for(key: ApiKey) -> None:
    for name, verb in (("ada", "cancel"), ("otto", "cancel"), ("otto", "revoke")):
        record_acts(Operator(name=name, door=COMMAND), verb, Change(key))
    assert [line["verb"] for line in acts()] == ["revoke", "cancel", "cancel"]
    assert [line["operator"] for line in acts("--verb", "cancel")] == ["otto", "ada"]
    assert [line["verb"] for line in acts("--operator", "otto", "--limit", "1", "--since", "1h")] == ["revoke"]


def test_entries_of_the_log_of_django_become_acts(key: ApiKey) -> None:
    migration = importlib.import_module("tasks_app.migrations.0018_acts")
    otto = User.objects.create_user("otto")
    row = task(key.principal)
    for model, pk, flag, message in (
        (ApiKey, key.pk, ADDITION, "Made. By command."),
        (Task, row.pk, CHANGE, "Canceled."),
        (User, otto.pk, CHANGE, '[{"changed": {"fields": ["Active"]}}]'),
    ):
        LogEntry.objects.create(
            user=otto,
            content_type=ContentType.objects.get_for_model(model),
            object_id=str(pk),
            object_repr="x",
            action_flag=flag,
            change_message=message,
        )
    migration.take_over(apps, None)
    otto.delete()
    assert list(Act.objects.order_by("pk").values_list("operator", "door", "verb", "kind", "object_id")) == [
        ("otto", "command", "made", "API key", str(key.pk)),
        ("otto", "admin", "canceled", "task", row.pk),
        ("otto", "admin", "change", "user", str(otto.pk or Act.objects.latest("pk").object_id)),
    ]
