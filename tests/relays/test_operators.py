"""Relays in the admin and over the operators' API: credentials are stored and deleted, and never shown."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from tasks_app.models import Act, Relay, RelayedTask, Tenant
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tasks_app.relays.credentials import open_credentials
from tests.operators.people import operator, program
from tests.support.commands import printed
from tests.transports.admin.pages import messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
SECRET = "hunter2-the-secret"
LIST = "admin:tasks_app_relay_changelist"
OAUTH = {"token_url": "https://far.example/token", "client_id": "desk", "token_scopes": "a b"}


@pytest.fixture(autouse=True)
def far(settings: Any) -> Relay:
    settings.A2A_RELAYS = {"far": {"url": "https://user:word@far.example/agents/far?key=abc"}}
    Relay.objects.create(name="former", credentials="x")
    return Relay.objects.create(name="far", problem="it did not answer")


def browser(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def do(client: Client, action: str, **values: str) -> Any:
    form = {"action": action, "_selected_action": "far", "post": "yes", "reason": "a test"} | values
    return client.post(reverse(LIST), form, follow=True)


@pytest.mark.parametrize(
    ("values", "kind"), [({}, "bearer"), ({"header": "X-API-Key"}, "header"), (OAUTH, "oauth")], ids=str
)
def test_credentials_are_stored_over_the_api_and_never_shown(values: dict[str, str], kind: str, far: Relay) -> None:
    robot = program(ADMINISTRATOR)
    answer = robot.post("relays/far/login/", secret=SECRET, reason="new", **values)
    assert answer.status_code == 200, answer.json()
    far.refresh_from_db()
    stored = open_credentials(far.credentials)
    assert (stored.kind, stored.secret, " ".join(stored.scopes)) == (kind, SECRET, values.get("token_scopes", ""))
    act = Act.objects.get(kind="relay")
    assert (act.verb, act.reason, act.door) == ("login", "new", "api")
    shown = f"{answer.json()} {robot.get('relays/').json()} {list(Act.objects.values())}"
    assert [secret for secret in (SECRET, "word", "abc", far.credentials) if secret in shown] == []


def test_the_api_lists_what_the_command_prints(far: Relay) -> None:
    RelayedTask.objects.create(task_id="t", relay="far", is_open=True)
    (row,) = program(VIEWER).get("relays/").json()["results"]
    assert [row] == printed("a2a", "relays", "list")
    assert (row["url"], row["credentials"], row["problem"], row["open_tasks"]) == (
        "https://far.example/…",
        "",
        "it did not answer",
        1,
    )


@pytest.mark.parametrize(
    ("values", "member"),
    [
        ({"client_id": "desk"}, "token_url"),
        ({"token_url": "https://far.example/"}, "client_id"),
        (OAUTH | {"header": "X-API-Key"}, "header"),
        (OAUTH | {"token_url": "https://user@far.example/"}, "token_url"),
        ({"header": "X API Key"}, "header"),
        ({"secret": "grüße"}, "secret"),
    ],
    ids=str,
)
def test_a_wrong_value_is_an_error_of_its_member(values: dict[str, str], member: str, far: Relay) -> None:
    answer = program(ADMINISTRATOR).post("relays/far/login/", **({"secret": SECRET} | values))
    assert answer.status_code == 400
    assert [error["where"] for error in answer.json()["errors"]] == [f"/{member}"]
    far.refresh_from_db()
    assert far.credentials == ""


def test_credentials_are_stored_and_deleted_in_the_admin(far: Relay) -> None:
    ada = browser(operator(ADMINISTRATOR))
    page = do(ada, "login", secret=SECRET)
    assert messages_of(page) == ["Login: far."]
    far.refresh_from_db()
    one = ada.get(reverse("admin:tasks_app_relay_change", args=["far"]))
    assert one.status_code == 200
    for shown in (page.content.decode(), one.content.decode()):
        assert "bearer" in shown
        assert "former" not in shown
        assert [secret for secret in (SECRET, "word@", "abc", far.credentials) if secret in shown] == []
    assert messages_of(do(ada, "logout")) == ["Logout: far."]
    assert messages_of(do(ada, "logout")) == [
        "The relay 'far' has no credentials; `manage.py a2a relays list` prints all relays."
    ]
    far.refresh_from_db()
    assert far.credentials == ""
    assert list(Act.objects.filter(kind="relay").order_by("id").values_list("verb", flat=True)) == ["login", "logout"]


def test_the_form_says_what_is_wrong(far: Relay) -> None:
    page = do(browser(operator(ADMINISTRATOR)), "login", secret=SECRET, client_id="desk")
    assert messages_of(page) == ["A token URL and a client id belong together."]
    assert not Act.objects.filter(kind="relay").exists()


def test_others_neither_store_credentials_nor_see_relays_of_all_tenants(far: Relay) -> None:
    worker = program(OPERATOR)
    assert worker.get("relays/far/").status_code == 200
    assert worker.post("relays/far/login/", secret=SECRET).status_code == 403
    assert program(ADMINISTRATOR, administers=False).post("relays/far/login/", secret=SECRET).status_code == 403
    Tenant.objects.create(name="acme")
    assert program(ADMINISTRATOR, reach=NamedReach(tenants=["acme"])).get("relays/far/").status_code == 404
