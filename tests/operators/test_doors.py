"""The three doors of operators: what the admin does is a command and JSON, too, and secrets are shown once by each."""

import argparse
import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.models import Permission, User
from django.core.management import get_commands, load_command_class
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.urls import reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.models import Act, ApiKey, OperatorReach, OperatorToken, Principal, Tenant
from tasks_app.operators import tokens
from tasks_app.operators.keys import make_key
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tests.operators.people import OPS, operator, program
from tests.support.callers import find_caller
from tests.transports.admin.pages import every_page, verbs_of_actions

pytestmark = pytest.mark.django_db
SPELLINGS: dict[str, dict[str, str]] = {
    "deliveries": {"send_again": "deliveries retry", "give_up": "deliveries give-up"},
    "keys": {"create": "a2a keys create"},
    "permissions": {"create": "a2a permissions allow"},
    "processes": {"confirm_clock": "a2a processes"},  # its option --clock-is-right
    "slack-questions": {"drop": "a2a slack drop", "send_again": "a2a slack send-again"},
    "slack-workspaces": {
        "create": "a2a slack add",
        "disable": "a2a slack disable",
        "enable": "a2a slack enable",
        "map_user": "a2a slack map",
        "unmap_user": "a2a slack unmap",
    },
    "tasks": {"cancel": "tasks cancel"},
    "tokens": {"create": "a2a operators token", "revoke": "a2a operators revoke"},
    "users": {"create": "a2a users make"},
    "webhooks": {"disable": "deliveries disable", "enable": "deliveries enable", "show_secret": "deliveries secret"},
}
"""The commands of verbs, by resource, where they are not `a2a RESOURCE VERB`."""
READING = {
    "deliveries": "deliveries list",
    "exchanges": "exchanges",
    "processes": "a2a processes",
    "slack-questions": "a2a slack questions",
    "slack-workspaces": "a2a slack list",
    "tasks": "tasks list",
    "tokens": "a2a operators list",
    "webhooks": "deliveries webhooks",
    "acts": "a2a acts",
    "audit": "a2a audit export",
    "refused-calls": "a2a audit export",
    "refusals": "a2a refusals",
    "usage": "a2a usage",
}
"""The commands that list a resource, where they are not `a2a RESOURCE list`."""
MAKING = ("add", "create", "make", "set")
"""Verbs of commands that make rows."""

FIELDS = {
    ("users", "enable"): "is_active",
    ("users", "disable"): "is_active",
    ("users", "role"): "groups",
    ("users", "details"): "email",
    ("roles", "change"): "permissions",
    ("roles", "rename"): "name",
}
"""Verbs that a form of the admin does, by the field of the form."""
INLINES = {("users", "reach"): OperatorReach}
"""Verbs that a form of the admin does, by the model of the rows that the form has within it."""
NOT_IN_THE_ADMIN = {
    ("processes", "confirm_clock"): "it is about the clock of the machine that answers, which a shell there compares",
    ("webhooks", "show_secret"): "it changes nothing, and the page must not show a secret to those who look on",
}
"""Verbs without an action or a form of the admin, and why."""


def subcommands(parser: argparse.ArgumentParser, words: str) -> Iterator[str]:
    """Yield a command and all its subcommands, as words."""
    yield words
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, inner in action.choices.items():
                yield from subcommands(inner, f"{words} {name}")


@pytest.fixture(scope="module")
def commands() -> set[str]:
    ours = [name for name, app in get_commands().items() if app == "tasks_app"]
    parsers = {name: load_command_class("tasks_app", name).create_parser("manage.py", name) for name in ours}
    return {words for name, parser in parsers.items() for words in subcommands(parser, name)}


def verbs() -> list[tuple[str, str]]:
    return [(resource.segment, verb) for resource in RESOURCES for verb in resource.verbs()]


@pytest.mark.parametrize(("segment", "verb"), verbs(), ids=str)
def test_each_verb_is_a_command(segment: str, verb: str, commands: set[str]) -> None:
    own = SPELLINGS.get(segment, {}).get(verb)
    names = MAKING if verb == "create" else (verb.replace("_", "-"),)
    possible = {own} if own else {f"a2a {segment} {name}" for name in names}
    assert possible & commands, f"none of these is a command: {possible}"


@pytest.mark.parametrize("segment", [resource.segment for resource in RESOURCES])
def test_each_resource_is_listed_by_a_command(segment: str, commands: set[str]) -> None:
    assert READING.get(segment, f"a2a {segment} list") in commands


def test_each_action_and_form_of_the_admin_is_a_verb_of_its_resource() -> None:
    resources = {resource.model: resource for resource in RESOURCES}
    lacking = []
    for model, pages in every_page().items():
        resource = resources.get(model)
        names = verbs_of_actions(pages)
        names |= {"create"} if model is not User and "add_view" in dir_of(pages) else set()
        if resource is None:
            lacking.append(model._meta.label)
        else:
            lacking += [f"{model._meta.label}.{name}" for name in sorted(names - set(resource.verbs()))]
    assert lacking == []


def is_in_the_admin(resource: Any, verb: str, request: HttpRequest) -> bool:
    """Return whether an action or a form of the admin does the verb."""
    pages = every_page()[resource.model]
    if verb in verbs_of_actions(pages):
        return True
    if verb == "create":
        return bool(pages.has_add_permission(request))
    if verb == "remove":
        return bool(pages.has_delete_permission(request))
    inlines = {inline.model for inline in pages.inlines}
    fields = flatten_fieldsets(pages.get_fieldsets(request, request.user))
    place = (resource.segment, verb)
    return FIELDS.get(place) in fields or INLINES.get(place) in inlines


@pytest.mark.parametrize(("segment", "verb"), verbs(), ids=str)
def test_each_verb_is_in_the_admin_or_has_a_reason(segment: str, verb: str, rf: RequestFactory) -> None:
    (resource,) = (each for each in RESOURCES if each.segment == segment)
    request = rf.get("/")
    request.user = User.objects.create_superuser("ada")
    assert is_in_the_admin(resource, verb, request) is ((segment, verb) not in NOT_IN_THE_ADMIN)


def test_the_reasons_are_about_verbs_that_exist() -> None:
    assert {*NOT_IN_THE_ADMIN, *FIELDS, *INLINES} <= set(verbs())
    assert all(len(reason) > 20 for reason in NOT_IN_THE_ADMIN.values())


def dir_of(pages: Any) -> set[str]:
    """Return the names that classes of ours define for a page."""
    return {name for each in type(pages).__mro__ if each.__module__.startswith("tasks_app") for name in vars(each)}


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def made(client: Client, model: str, **values: str) -> str:
    """Fill in the form that makes a row; return the page."""
    answer = client.post(reverse(f"admin:tasks_app_{model}_add"), values)
    assert answer.status_code == 200
    assert "no-store" in answer.headers["Cache-Control"]
    text: str = answer.content.decode()
    return text


def test_a_key_is_made_in_the_admin_and_shown_once() -> None:
    client = browser(operator(ADMINISTRATOR))
    page = made(client, "apikey", principal="olga", tenant="acme", scopes="tasks:read", days="7", reason="for the test")
    (key,) = re.findall(r"<bdi>(tdk_[\w-]+)</bdi>", page)
    caller = find_caller(key)
    assert caller
    assert caller.name == "olga"
    row = ApiKey.objects.get()
    assert (row.scopes, row.language, row.name) == ("tasks:read", None, "olga")
    assert Act.objects.get(verb="make", kind="API key").reason == "for the test"
    assert key not in client.get(reverse("admin:tasks_app_apikey_changelist")).content.decode()


@pytest.mark.parametrize(
    "values",
    [
        {"principal": "", "tenant": "acme", "scopes": "*"},
        {"principal": "x", "tenant": "admin", "scopes": "*"},
        {"principal": "x", "tenant": "acme", "scopes": "*", "days": "-1"},
        {"principal": "x", "tenant": "acme", "scopes": "*", "days": "1e-9"},
        {"principal": "x", "tenant": "acme", "scopes": "*", "language": "klingon"},
    ],
)
def test_a_form_that_is_wrong_makes_nothing(values: dict[str, str]) -> None:
    page = made(browser(operator(ADMINISTRATOR)), "apikey", **values)
    assert "errorlist" in page
    assert not ApiKey.objects.exists()


def test_a_viewer_makes_no_key_and_an_operator_of_a_tenant_none_of_another(olga: Principal) -> None:
    assert browser(operator(VIEWER)).get(reverse("admin:tasks_app_apikey_add")).status_code == 403
    client = browser(operator(ADMINISTRATOR, reach=NamedReach(tenants=["acme"])))
    assert "is not one of yours" in made(client, "apikey", principal="x", tenant="elsewhere", scopes="*")
    assert not Tenant.objects.filter(name="elsewhere").exists()


def test_a_token_is_made_and_revoked_in_the_admin() -> None:
    user = operator(ADMINISTRATOR)
    client = browser(user)
    (token,) = re.findall(r"<bdi>(tdo_[\w-]+)</bdi>", made(client, "operatortoken", name="ci", days="3"))
    row = tokens.find_token(token)
    assert row
    assert row.user == user
    listing = reverse("admin:tasks_app_operatortoken_changelist")
    assert row.digest not in client.get(listing).content.decode()
    client.post(listing, {"action": "revoke", "_selected_action": [row.pk]})
    assert tokens.find_token(token) is None
    ada = User.objects.create_superuser("ada", password="a long password")
    assert "is a superuser" in made(browser(ada), "operatortoken", name="ci", days="3")
    assert OperatorToken.objects.count() == 1


def test_the_api_asks_for_the_permissions_that_the_admin_asks_for(client: Client, olga: Principal) -> None:
    """A group of one's own may have the permission to revoke keys alone, or to make users alone."""
    robot, key = program(), make_key(OPS, "olga", tenant="acme", scopes="tasks:read")[0]
    client.force_login(robot.user)

    def allow(*names: str) -> None:
        robot.user.user_permissions.set(Permission.objects.filter(codename__in=names))

    def rotate() -> tuple[int, int]:
        form = {"action": "rotate", "_selected_action": [key.pk]}
        page = client.post(reverse("admin:tasks_app_apikey_changelist"), form)
        return page.status_code, robot.post(f"keys/{key.pk}/rotate/").status_code

    allow("view_apikey", "change_apikey")
    assert rotate() == (302, 403), "the list of the admin does not have the action"
    allow("view_apikey", "change_apikey", "add_apikey")
    assert rotate() == (200, 200)

    wish = {"username": "vera", "roles": [ADMINISTRATOR], "all_tenants": True}
    allow("add_user")
    assert client.get(reverse("admin:auth_user_add")).status_code == 403
    assert "auth.change_user" in robot.post("users/", **wish).json()["detail"]
    allow("add_user", "change_user")
    assert client.get(reverse("admin:auth_user_add")).status_code == 200
    assert robot.post("users/", **wish).status_code == 201
