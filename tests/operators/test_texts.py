"""Texts that operators give are checked alike at each door: names on one line, and scopes that can open something."""

from typing import Any

import pytest
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, ApiKey, Principal
from tasks_app.operators.keys import make_key
from tasks_app.operators.roles import ADMINISTRATOR
from tests.operators.people import OPS, operator, program
from tests.support.commands import run
from tests.support.operators import task
from tests.transports.admin.pages import form_digest

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
KEY = {"principal": "pia", "tenant": "acme", "name": "ci", "scopes": "tasks:read", "reason": "new"}
LINES, COMMAS = "must have printable characters only", "separate scopes by spaces, not by commas"
WRONG = [
    ("principal", "pi\na", LINES),
    ("tenant", "ac\tme", LINES),
    ("name", "c\x1bi", LINES),
    ("reason", "n\new", LINES),
    ("scopes", "tasks:read\ntasks:write", LINES),
    ("scopes", "tasks:read,tasks:write", COMMAS),
]


@pytest.mark.parametrize(("member", "text", "sentence"), WRONG)
def test_the_api_refuses_a_text_and_names_its_member(member: str, text: str, sentence: str) -> None:
    answer = program(ADMINISTRATOR).post("keys/", **KEY | {member: text})
    assert answer.status_code == 400, answer.content
    (error,) = answer.json()["errors"]
    assert (error["where"], sentence in error["what"]) == (f"/{member}", True)
    assert not Principal.objects.exists()


@pytest.mark.parametrize(("member", "text", "sentence"), WRONG)
def test_the_form_refuses_a_text(client: Client, member: str, text: str, sentence: str) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    page = client.post(reverse("admin:tasks_app_apikey_add"), KEY | {member: text})
    assert (page.status_code, sentence in page.content.decode()) == (200, True)
    assert not ApiKey.objects.exists()


@pytest.mark.parametrize(("member", "text", "_"), WRONG)
def test_the_command_refuses_a_text(member: str, text: str, _: str) -> None:
    words = [f"--{name}={value}" for name, value in (KEY | {member: text}).items() if name != "principal"]
    assert run("a2a", "keys", "create", text if member == "principal" else "pia", *words).code == 1
    assert not Principal.objects.exists()


@pytest.mark.parametrize("reason", ["n\new", "n\0ew", "n\u202eew"])
def test_an_action_and_a_form_of_the_admin_refuse_a_reason(client: Client, olga: Principal, reason: str) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    wish = {"tenant": olga.tenant_id, "principal": olga.pk, "reason": reason}
    for model, values in {
        "budget": {"dollars": "5", "period": "total"},
        "permission": {"kind": "agent", "allows": "yes", "pattern": "echo"},
    }.items():
        page = client.post(reverse(f"admin:tasks_app_{model}_add"), wish | values)
        assert (page.status_code, LINES in page.content.decode()) == (200, True), model
    key, _ = make_key(OPS, "olga")
    place, form = reverse("admin:tasks_app_apikey_changelist"), {"_selected_action": [key.pk], "post": "yes"}
    page = client.post(place, form | {"action": "revoke", "reason": reason}, follow=True)
    assert f"Nothing was done. The reason {LINES}" in page.content.decode()
    place = reverse("admin:tasks_app_task_cancel", args=[task(olga).pk])
    assert client.post(place, {"reason": reason}).status_code == 400
    assert set(Act.objects.values_list("verb", "kind")) == {("make", "API key")}
    form |= {"action": "revoke", "reason": " it leaked\n"}  # A form drops the white space around it.
    client.post(reverse("admin:tasks_app_apikey_changelist"), form)
    assert Act.objects.latest("pk").reason == "it leaked"


def test_a_permission_from_the_admin_has_a_reason(client: Client, olga: Principal) -> None:
    client.force_login(User.objects.create_superuser("ada"))
    place, form = reverse("admin:tasks_app_permission_add"), {"principal": olga.pk, "kind": "agent", "allows": "yes"}
    assert 'name="reason"' in client.get(place).content.decode()
    assert client.post(place, form | {"pattern": "echo", "reason": "a trial"}).status_code == 302
    assert Act.objects.get().reason == "a trial"


def test_links_and_clients_are_checked_too(olga: Principal, settings: Any) -> None:
    robot = program(ADMINISTRATOR)
    assert robot.get("clients/").status_code == 200
    settings.A2A_OAUTH = True  # The paths of the API are loaded already, without those of the OAuth server.
    wish = {"principal": "olga", "tenant": "acme", "scopes": "tasks:read,tasks:write"}
    for answer in (robot.post(f"users/{robot.user.pk}/link/", **wish), robot.post("clients/", name="ci", **wish)):
        assert answer.status_code == 400, answer.content
        assert answer.json()["errors"] == [{"where": "/scopes", "what": COMMAS}]


def test_an_email_address_that_no_column_holds_is_refused() -> None:
    address = "x" * 250 + "@example.com"
    answer = program(ADMINISTRATOR).post("users/", username="vera", roles=[], email=address)
    assert answer.status_code == 400, answer.content
    assert answer.json()["errors"][0]["where"] == "/email"
    assert run("a2a", "users", "make", "vera", "--email", address).code == 1


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("budgets/", {"amount": "1"}),
        ("limits/", {"per_minute": 1}),
        ("permissions/", {"effect": "deny", "kind": "agent", "pattern": "x"}),
    ],
)
def test_an_unknown_holder_is_an_error_of_its_member(path: str, values: dict[str, Any], olga: Principal) -> None:
    robot = program(ADMINISTRATOR)
    for member, names in (("tenant", ("nowhere", None)), ("principal", ("acme", "nobody"))):
        tenant, principal = names
        answer = robot.post(path, **values, tenant=tenant, principal=principal)
        assert answer.status_code == 400, answer.content
        assert answer.json()["errors"][0]["where"] == f"/{member}"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("VERA", "There is a user vera already"),
        ("\uff36era", "There is a user vera already"),  # a wide V, which Django stores as a usual one
        ("\ufb03" * 51, "at most 150 characters"),  # a ligature, which Django stores as three letters
        ("ve ra", "Enter a valid username"),
    ],
)
def test_the_name_of_an_operator_is_checked_as_it_is_stored(name: str, sentence: str) -> None:
    robot = program(ADMINISTRATOR)
    assert robot.post("users/", username="vera", roles=[]).status_code == 201
    answer, failed = robot.post("users/", username=name, roles=[]), run("a2a", "users", "make", name)
    assert answer.status_code == 400, answer.content
    assert (sentence in answer.json()["errors"][0]["what"], sentence in failed.errors) == (True, True), failed
    assert User.objects.count() == 2


def test_the_name_of_an_operator_is_as_long_at_each_door() -> None:
    assert program(ADMINISTRATOR).post("users/", username="v" * 150, roles=[]).status_code == 201
    assert run("a2a", "users", "make", "w" * 150).code == 0
    assert "at most 150 characters" in run("a2a", "users", "make", "x" * 151).errors
    assert "An operator cannot be called ''" in run("a2a", "users", "make", "").errors


def test_a_scope_that_opens_nothing_here_is_a_warning() -> None:
    scopes = "tasks:read acp:tasks:write weather task:write"
    made = run("a2a", "keys", "create", "pia", "--scopes", scopes)
    assert (made.code, made.lines[0]["scopes"]) == (0, scopes)
    assert [line.partition("'")[2].partition("'")[0] for line in made.errors.splitlines()] == ["task:write"]
    assert run("a2a", "keys", "create", "tom").errors == ""


def test_the_api_and_the_admin_warn_of_such_a_scope(admin_client: Client, olga: Principal) -> None:
    sentence = "No operation asks for the scope 'task:write', and no agent here: is the name right?"
    key = {"principal": "olga", "tenant": "acme", "scopes": "tasks:read task:write"}
    vera, robot = operator(name="vera"), program(ADMINISTRATOR)
    for path in ("keys/", f"users/{vera.pk}/link/"):
        assert robot.post(path, **key).json()["warnings"] == [sentence]
        assert "warnings" not in robot.post(path, **key | {"scopes": "tasks:read acp:tasks:write weather"}).json()
    action = {"action": "link", ACTION_CHECKBOX_NAME: [vera.pk], "post": "yes"}
    for page, values in (("tasks_app_apikey_add", key), ("auth_user_changelist", key | action)):
        answer = admin_client.post(reverse(f"admin:{page}"), values, follow=True)
        assert [str(each) for each in answer.context["messages"] if each.level_tag == "warning"] == [sentence]


def test_a_group_that_was_made_here_is_a_role_at_each_door() -> None:
    vera = operator(ADMINISTRATOR, name="vera")
    Group.objects.create(name="night watch")
    assert run("a2a", "users", "role", "vera", "night watch", "viewer").code == 0
    robot = program(ADMINISTRATOR)
    assert robot.get(f"users/{vera.pk}/").json()["roles"] == ["night watch", "viewer"]
    assert robot.post(f"users/{vera.pk}/role/", roles=["viewer"]).status_code == 200
    assert list(vera.groups.values_list("name", flat=True)) == ["viewer"]
    (made,) = run("a2a", "users", "make", "olaf", "--role", "night watch").lines
    assert made["roles"] == ["night watch"]


def test_a_role_that_does_not_exist_is_refused_with_all_that_do() -> None:
    operator(ADMINISTRATOR, name="vera")
    failed = run("a2a", "users", "role", "vera", "god")
    assert failed.code != 0
    assert "There is no role 'god': the roles are viewer, operator, agent owner, auditor, adm" in failed.errors


def test_the_form_of_an_operator_takes_no_name_that_turns_the_line_around(admin_client: Client) -> None:
    tom = operator(name="tom")
    place = reverse("admin:auth_user_change", args=[tom.pk])
    page = admin_client.post(place, {"first_name": "To\u202em"} | form_digest(admin_client, place))
    assert "must have printable characters only" in page.content.decode()


@pytest.mark.parametrize(
    ("page", "values"),
    [
        ("auth_group_add", {"name": "watch", "permissions": "9" * 40}),
        ("auth_user_change", {"groups": "9" * 40, "user_permissions": "9" * 40}),
        ("auth_user_change", {"reach-0-tenants": "9" * 40}),
    ],
    ids=["permission", "role", "tenant"],
)
def test_a_form_refuses_a_choice_that_no_row_can_be(client: Client, page: str, values: dict[str, str]) -> None:
    ada = User.objects.create_superuser("ada")
    client.force_login(ada)
    place = reverse(f"admin:{page}", args=[ada.pk] if page.endswith("change") else ())
    inline = {"reach-TOTAL_FORMS": "1", "reach-INITIAL_FORMS": "0"}
    digest = form_digest(client, place) if page.endswith("change") else {}
    answer = client.post(place, {"username": "ada", **inline, **values, **digest})
    assert answer.status_code == 200
    assert "errorlist" in answer.content.decode()
    assert not Act.objects.exists()
