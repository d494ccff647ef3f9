"""Roles that a deployment makes: by command, in the admin and over JSON alike."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act
from tasks_app.operators import groups
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, ROLES
from tasks_app.operators.users import NamedReach
from tests.operators.people import OPS, operator, program
from tests.support.commands import printed, run
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
WATCH = ["tasks_app.view_exchange", "tasks_app.view_task"]


def role_of_command() -> dict[str, Any]:
    """Make a role, change it, and return it as it is listed."""
    printed("a2a", "roles", "make", "watch", *WATCH)
    printed("a2a", "roles", "change", "watch", WATCH[1])
    return printed("a2a", "roles", "list", "--limit", "1")[0]


def role_of_program() -> dict[str, Any]:
    robot = program(ADMINISTRATOR)
    role = robot.post("roles/", name="watch", permissions=WATCH).json()
    robot.post(f"roles/{role['id']}/change/", permissions=WATCH[1:])
    (row,) = robot.get("roles/", name="watch").json()["results"]
    assert row == robot.get(f"roles/{role['id']}/").json()
    return dict(row)


@pytest.mark.parametrize("make", [role_of_command, role_of_program])
def test_a_role_is_made_and_changed_and_what_it_permits_counts(make: Any) -> None:
    role = make()
    assert (role["name"], role["permissions"]) == ("watch", WATCH[1:])
    assert list(Act.objects.filter(kind="group").order_by("pk").values_list("verb", flat=True)) == ["make", "change"]
    robot = program("watch")
    assert robot.get("tasks/").status_code == 200
    assert robot.get("exchanges/").status_code == 403


def test_a_command_takes_all_permissions_of_a_role_only_when_asked() -> None:
    printed("a2a", "roles", "make", "watch", *WATCH)
    for words in ((), (*WATCH, "--none")):
        assert "Give permissions, or --none" in run("a2a", "roles", "change", "watch", *words).errors
    assert Group.objects.get(name="watch").permissions.count() == len(WATCH)
    assert printed("a2a", "roles", "change", "watch", "--none")[0]["permissions"] == []
    assert printed("a2a", "roles", "make", "none", "--none")[0]["permissions"] == []


def test_a_role_is_removed_and_the_servers_own_stay() -> None:
    Group.objects.create(name="watch")
    ada = User.objects.create_superuser("ada")
    olaf = operator("watch", OPERATOR)
    client = Client()
    client.force_login(ada)
    for name in ROLES:
        assert "stays" in run("a2a", "roles", "remove", name).errors
        page = client.post(reverse("admin:auth_group_delete", args=[Group.objects.get(name=name).pk]), {"post": "yes"})
        assert page.status_code == 403
    (removed,) = printed("a2a", "roles", "remove", "watch")
    assert removed["name"] == "watch"
    assert list(Group.objects.order_by("name").values_list("name", flat=True)) == sorted(ROLES)
    assert [group.name for group in olaf.groups.all()] == [OPERATOR]


def test_a_role_needs_a_new_name_and_permissions_that_exist() -> None:
    robot = program(ADMINISTRATOR)
    for name, permissions, member in (
        (OPERATOR, WATCH, "name"),
        ("", WATCH, "name"),
        ("x" * 151, WATCH, "name"),
        ("wa\ntch", WATCH, "name"),
        ("watch", ["tasks_app.view_everything"], "permissions"),
        ("watch", ["view_task"], "permissions"),
        ("watch", "tasks_app.view_task", "permissions"),
    ):
        answer = robot.post("roles/", name=name, permissions=permissions)
        assert answer.status_code == 400, (name, permissions)
        assert answer.json()["errors"][0]["where"].startswith(f"/{member}")
    assert "There is no permission 'view_task'" in run("a2a", "roles", "make", "watch", "view_task").errors
    assert "There is a role 'operator' already" in run("a2a", "roles", "make", OPERATOR, *WATCH).errors
    assert "There is no role 'watch'" in run("a2a", "roles", "change", "watch", *WATCH).errors
    assert Group.objects.count() == len(ROLES)


UNSEEN = ["agent  owner", "operator\ufe0f", "\u034foperator", "vie\u115fwer", "\u3164", "\u2800"]


@pytest.mark.parametrize("name", ["Operator", "\uff4fperator", "AGENT OWNER", "wa\u202etch", "x" * 151, *UNSEEN])
def test_no_role_looks_like_another_at_any_door(name: str) -> None:
    robot, client = program(ADMINISTRATOR), Client()
    client.force_login(robot.user)
    assert robot.post("roles/", name=name, permissions=WATCH).json()["errors"][0]["where"] == "/name"
    assert "role" in run("a2a", "roles", "make", name, *WATCH).errors
    assert "errorlist" in client.post(reverse("admin:auth_group_add"), {"name": name}).content.decode()
    assert Group.objects.count() == len(ROLES)


def test_a_name_has_no_space_around_it_which_json_and_forms_drop() -> None:
    for name in (f" {OPERATOR} ", " "):
        assert "must not begin or end with a space" in run("a2a", "roles", "make", name, *WATCH).errors


def test_a_role_is_renamed_at_each_door_and_those_of_the_server_at_none() -> None:
    """The name of an administrator's role, and that of agent owners, decide what operators see."""
    role, robot, client = Group.objects.create(name="watch"), program(ADMINISTRATOR), Client()
    client.force_login(robot.user)
    assert printed("a2a", "roles", "rename", "watch", "night")[0]["name"] == "night"
    assert robot.post(f"roles/{role.pk}/rename/", name="Night").json()["name"] == "Night"
    place = reverse("admin:auth_group_change", args=[role.pk])
    client.post(place, {"name": "day", "permissions": []} | form_digest(client, place))
    assert Group.objects.get(pk=role.pk).name == "day"
    assert robot.post(f"roles/{role.pk}/rename/", name="Viewer").status_code == 400
    for own in Group.objects.filter(name__in=ROLES):
        assert "keeps its name" in run("a2a", "roles", "rename", own.name, "x").errors
        assert robot.post(f"roles/{own.pk}/rename/", name="x").status_code == 409
    own = Group.objects.get(name=ADMINISTRATOR)
    page = client.get(reverse("admin:auth_group_change", args=[own.pk])).content.decode()
    assert 'name="name"' not in page


def test_two_operators_who_rename_roles_at_once_get_a_sentence_and_true_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    role, robot = Group.objects.create(name="watch"), program(ADMINISTRATOR)
    seen_before = Group.objects.get(pk=role.pk)
    groups.rename_role(OPS, role, "night")
    groups.rename_role(OPS, seen_before, "day")
    acts = Act.objects.filter(verb="rename").order_by("pk")
    assert [json.loads(act.before)["name"] for act in acts] == ["watch", "night"]
    monkeypatch.setattr(groups, "check_name", lambda *_: Group.objects.get_or_create(name="late"))
    answer = robot.post(f"roles/{role.pk}/rename/", name="late")
    assert (answer.status_code, answer.json()["errors"][0]["where"]) == (400, "/name")
    assert "There is a role 'late' already" in run("a2a", "roles", "rename", "day", "late").errors
    assert Group.objects.get(pk=role.pk).name == "day"


def test_only_an_administrator_of_every_tenant_makes_roles() -> None:
    assert program(OPERATOR).post("roles/", name="watch", permissions=WATCH).status_code == 403
    limited = program(ADMINISTRATOR, reach=NamedReach(all_tenants=True, agents=["story"]))
    assert limited.post("roles/", name="watch", permissions=WATCH).status_code == 403
    careful = program(ADMINISTRATOR, administers=False)
    assert careful.post("roles/", name="watch", permissions=WATCH).status_code == 403


def test_the_last_role_that_gives_roles_keeps_its_permissions() -> None:
    printed("a2a", "roles", "make", "giver", "auth.change_user", "auth.change_group", "auth.view_group")
    role = Group.objects.get(name="giver")
    answer = program("giver").post(f"roles/{role.pk}/change/", permissions=WATCH)
    assert (answer.status_code, role.permissions.count()) == (409, 3)
    assert "no operator could give roles" in answer.json()["detail"]


def test_the_last_role_that_gives_roles_is_not_deleted_at_any_door() -> None:
    names = ("view_user", "change_user", "view_group", "delete_group")
    printed("a2a", "roles", "make", "giver", *(f"auth.{name}" for name in names))
    role, robot = Group.objects.get(name="giver"), program("giver")
    client = Client()
    client.force_login(robot.user)
    assert robot.post(f"roles/{role.pk}/remove/").status_code == 409
    page = client.post(reverse("admin:auth_group_delete", args=[role.pk]), {"post": "yes"}, follow=True)
    assert "no operator could give roles" in page.content.decode()
    form = {"action": "delete_selected", "_selected_action": [role.pk], "post": "yes"}
    client.post(reverse("admin:auth_group_changelist"), form)
    assert Group.objects.filter(name="giver").exists()
    operator(ADMINISTRATOR)
    client.post(reverse("admin:auth_group_delete", args=[role.pk]), {"post": "yes"})
    assert not Group.objects.filter(name="giver").exists()
    assert json.loads(Act.objects.get(verb="delete").before)["permissions"] == sorted(f"auth.{name}" for name in names)


def test_principals_and_tenants_are_listed() -> None:
    printed("a2a", "keys", "create", "pia", "--tenant", "acme")
    printed("a2a", "keys", "create", "tom")
    assert [row["name"] for row in printed("a2a", "tenants", "list")] == ["default", "acme"]
    (row,) = printed("a2a", "principals", "list", "--tenant", "acme")
    assert (row["name"], row["tenant"]) == ("pia", "acme")
    assert [row["name"] for row in printed("a2a", "principals", "list")] == ["tom", "pia"]
    for noun, name in (("tenants", "acme"), ("principals", "pia")):
        assert [row["name"] for row in printed("a2a", noun, "list", "--name", name)] == [name]
        assert printed("a2a", noun, "list", "--name", "nobody") == []


def test_the_acts_about_an_operator_have_the_email_and_each_role_once() -> None:
    robot = program(ADMINISTRATOR)
    printed("a2a", "users", "make", "vera", "--email", "vera@example.com", "--role", "viewer", "--role", "viewer")
    made = robot.post("users/", username="tom", email="tom@example.com", roles=["viewer", "viewer"]).json()
    for act, email in zip(Act.objects.order_by("-pk")[:2], ("tom@example.com", "vera@example.com"), strict=True):
        after = json.loads(act.after)
        assert (act.verb, after["email"], after["roles"]) == ("make", email, ["viewer"])
    robot.post(f"users/{made['id']}/role/", roles=["viewer", "viewer", "operator"])
    act = Act.objects.latest("pk")
    assert (act.verb, json.loads(act.after)) == ("role", {"roles": ["operator", "viewer"]})
