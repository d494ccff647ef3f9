"""Permissions by command and in the admin: set, listed and removed, and each time an act."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission as Django
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client
from django.urls import reverse

from tasks_app.callers.rules import KINDS, Rule, rules_of
from tasks_app.models import Act, Permission, Principal
from tasks_app.operators.roles import ADMINISTRATOR
from tasks_app.operators.users import NamedReach
from tests.conftest import Person
from tests.operators.people import program
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
ADD, LIST = reverse("admin:tasks_app_permission_add"), reverse("admin:tasks_app_permission_changelist")


def permissions(*words: str) -> list[dict[str, Any]]:
    return printed("a2a", "permissions", *words)


def rules() -> tuple[Rule, ...]:
    return rules_of(Principal.objects.select_related("tenant").get())


def test_a_command_allows_denies_lists_and_removes(owner: Person) -> None:
    home = ("--tenant", "home", "--operator", "ada")
    (one,) = permissions("allow", "owner", "agent", "report-*", *home)
    (two,) = permissions("deny", "*", "operation", "delete", *home)
    assert (one["principal"], one["effect"], one["kind"], one["pattern"]) == ("owner", "allow", "agent", "report-*")
    assert (two["principal"], two["tenant"]) == ("*", "home")
    assert permissions("list") == [two, one]
    assert rules() == (Rule(True, "agent", "report-*"), Rule(False, "operation", "delete"))
    (changed,) = permissions("deny", "owner", "agent", "report-*", *home)
    assert changed == one | {"effect": "deny"}
    assert permissions("remove", str(two["id"]), "--operator", "otto") == [two]
    assert permissions("list") == [changed]
    acts = Act.objects.order_by("pk").values_list("operator", "verb", "name")
    assert list(acts) == [
        ("ada", "allow", "allow agent report-*"),
        ("ada", "deny", "deny operation delete"),
        ("ada", "deny", "deny agent report-*"),
        ("otto", "remove", "deny operation delete"),
    ]


def test_permissions_of_all_principals_of_a_tenant_are_listed_by_their_name(owner: Person) -> None:
    permissions("allow", "owner", "agent", "report-*", "--tenant", "home")
    (everyone,) = permissions("deny", "*", "operation", "delete", "--tenant", "home")
    assert permissions("list", "--principal", "*") == [everyone]
    answer = program(ADMINISTRATOR).get("permissions/", principal="*")
    assert [row["id"] for row in answer.json()["results"]] == [everyone["id"]]


def test_spaces_around_a_pattern_do_not_count(owner: Person) -> None:
    (row,) = permissions("deny", "owner", "agent", " payments ", "--tenant", "home")
    assert (row["pattern"], rules()) == ("payments", (Rule(False, "agent", "payments"),))
    with pytest.raises(CommandError, match="1 to 128 printable characters"):
        permissions("deny", "owner", "agent", "  ", "--tenant", "home")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("allow", "owner", "agent", "x"), "There is no tenant 'default'"),
        (("allow", "nobody", "agent", "x", "--tenant", "home"), "The tenant 'home' has no principal 'nobody'"),
        (("allow", "owner", "agent", "a*b", "--tenant", "home"), "one asterisk at its end"),
        (("allow", "owner", "tool", "x", "--tenant", "home"), "invalid choice: 'tool'"),
        (("deny", "owner", "agent", "story,echo", "--tenant", "home"), "No agent can be called 'story,echo'"),
        (("deny", "owner", "agent", "Report-*", "--tenant", "home"), "No agent can be called 'Report-"),
        (("deny", "owner", "phase", "deploy", "--tenant", "home"), "phases are specification, pseudocode, archi"),
        (("deny", "owner", "phase", "build-*", "--tenant", "home"), "No phase matches 'build-\\*'"),
        (("remove", "77"), "no permission with the id 77"),
    ],
)
def test_a_command_that_means_nothing_is_refused(owner: Person, words: tuple[str, ...], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        permissions(*words)
    assert not Permission.objects.exists()


@pytest.fixture
def admin(client: Client) -> Client:
    client.force_login(User.objects.create_superuser("ada", password="a long password"))
    return client


def test_the_admin_adds_and_removes(admin: Client, owner: Person) -> None:
    principal = Principal.objects.get()
    assert all(f'value="{kind}"' in admin.get(ADD).content.decode() for kind in KINDS)
    form = {"principal": str(principal.pk), "allows": "no", "kind": "skill", "pattern": "pay*"}
    assert admin.post(ADD, form).status_code == 302
    row = Permission.objects.get()
    assert (row.tenant, str(row), rules()) == (principal.tenant, "deny skill pay*", (Rule(False, "skill", "pay*"),))
    assert "pay*" in admin.get(LIST).content.decode()
    assert admin.get(reverse("admin:tasks_app_permission_change", args=[row.pk])).status_code == 200
    asked = admin.post(LIST, {"action": "remove", "_selected_action": [row.pk]}).content.decode()
    assert "deny skill pay* for owner" in asked
    assert Permission.objects.exists()
    admin.post(LIST, {"action": "remove", "_selected_action": [row.pk], "post": "yes", "reason": "a mistake"})
    assert not Permission.objects.exists()
    assert rules() == ()
    assert list(Act.objects.order_by("pk").values_list("verb", "reason")) == [("deny", ""), ("remove", "a mistake")]


@pytest.mark.parametrize(
    ("form", "sentence"),
    [
        ({"pattern": "x"}, "Choose a principal, or a tenant"),
        ({"pattern": "a*b", "tenant": "1"}, "one asterisk at its end"),
        ({"pattern": "story,echo", "tenant": "1"}, "no agent can be called"),
        ({"pattern": "deploy", "kind": "phase", "tenant": "1"}, "no phase matches"),
        ({"pattern": "x", "kind": "tool"}, "tool is not one of the available choices"),
    ],
)
def test_the_form_says_what_is_wrong(admin: Client, owner: Person, form: dict[str, str], sentence: str) -> None:
    tenant = {"tenant": str(owner.caller.tenant_id)} if "tenant" in form else {}
    answer = admin.post(ADD, {"allows": "yes", "kind": "agent"} | form | tenant)
    assert (answer.status_code, sentence in answer.content.decode()) == (200, True)
    assert not Permission.objects.exists()


def test_the_form_refuses_a_principal_of_another_tenant(admin: Client, owner: Person, stranger: Person) -> None:
    form = {"allows": "yes", "kind": "agent", "pattern": "x", "principal": str(owner.caller.owner_id)}
    page = admin.post(ADD, form | {"tenant": str(stranger.caller.tenant_id)}).content.decode()
    assert "The principal owner is not of this tenant." in page
    assert not Permission.objects.exists()
    assert admin.post(ADD, form | {"tenant": str(owner.caller.tenant_id)}).status_code == 302
    assert Permission.objects.get().tenant_id == owner.caller.tenant_id


def test_the_form_says_that_there_are_too_many(admin: Client, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasks_app.operators.permissions.MOST", 1)
    permissions("allow", "owner", "agent", "story", "--tenant", "home")
    principal = str(Principal.objects.get().pk)
    answer = admin.post(ADD, {"principal": principal, "kind": "agent", "pattern": "weather", "allows": "yes"})
    assert "1 permissions at most" in answer.content.decode()
    assert Permission.objects.count() == 1


def test_the_form_does_not_change_a_permission(admin: Client, owner: Person) -> None:
    form = {"tenant": str(owner.caller.tenant_id), "allows": "yes", "kind": "agent", "pattern": "x"}
    admin.post(ADD, form)
    assert "remove it first" in admin.post(ADD, form | {"allows": "no"}).content.decode()
    row = Permission.objects.get()
    assert admin.post(reverse("admin:tasks_app_permission_change", args=[row.pk]), form).status_code == 403
    assert row.allows


def test_a_viewer_of_permissions_changes_none(client: Client, owner: Person) -> None:
    user = User.objects.create_user("vera", is_staff=True)
    user.user_permissions.set(Django.objects.filter(codename="view_permission", content_type__app_label="tasks_app"))
    client.force_login(user)
    assert client.get(LIST).status_code == 200
    assert client.get(ADD).status_code == 403
    form = {"tenant": str(owner.caller.tenant_id), "allows": "yes", "kind": "agent", "pattern": "x"}
    assert client.post(ADD, form).status_code == 403
    assert client.post(LIST, {"action": "remove", "_selected_action": ["1"], "post": "yes"}).status_code == 403


# ----------------------------------------------------------------- as JSON


def test_the_api_allows_denies_lists_and_removes(owner: Person, stranger: Person) -> None:
    robot = program(ADMINISTRATOR, reach=NamedReach(tenants=["home"]))
    wish = {"tenant": "home", "principal": "owner", "effect": "deny", "kind": "phase", "pattern": "completion"}
    made = robot.post("permissions/", **wish)
    assert made.status_code == 201, made.content
    row = made.json()
    assert row | wish == row
    for name in (None, "*"):  # as the command spells it
        everyone = robot.post("permissions/", **wish | {"principal": name, "effect": "allow", "pattern": "*"}).json()
        assert everyone["principal"] is None
    assert robot.get("permissions/?principal=owner").json()["results"] == [row]
    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    assert rules_of(principal) == (Rule(False, "phase", "completion"), Rule(True, "phase", "*"))
    assert robot.post(f"permissions/{row['id']}/remove/", reason="over").json() == row
    assert robot.post(f"permissions/{row['id']}/remove/").status_code == 404
    for wrong in (
        {"pattern": "a*b"},
        {"pattern": "deploy"},
        {"effect": "maybe"},
        {"principal": "nobody"},
        {"kind": "tool"},
    ):
        assert robot.post("permissions/", **wish | wrong).status_code == 400
    assert robot.post("permissions/", **wish | {"tenant": "abroad", "principal": "stranger"}).status_code == 403
    assert list(Permission.objects.values_list("pattern", flat=True)) == ["*"]
    assert list(Act.objects.filter(kind="permission").order_by("pk").values_list("verb", "door", "reason")) == [
        ("deny", "api", ""),
        ("allow", "api", ""),
        ("allow", "api", ""),
        ("remove", "api", "over"),
    ]


def test_the_admin_removes_only_the_permissions_that_were_confirmed(owner: Person, admin_client: Client) -> None:
    (one,) = permissions("allow", "owner", "agent", "a", "--tenant", "home")
    (two,) = permissions("allow", "owner", "agent", "b", "--tenant", "home")
    form = {"action": "remove", "_selected_action": str(one["id"]), "post": "yes", "select_across": "1"}
    admin_client.post(LIST, form)
    assert list(Permission.objects.values_list("id", flat=True)) == [two["id"]]
    assert Act.objects.filter(verb="remove").count() == 1
