"""Acts that give rights need a new proof of the operator, or a token that was made for them."""

from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client, RequestFactory
from django.urls import ResolverMatch, reverse

from tasks_app.api.resources import RESOURCES
from tasks_app.models import ApiKey
from tasks_app.operators import proof
from tasks_app.operators.roles import ADMINISTRATOR, AUDITOR
from tests.operators.codes import code_of, enrolled, forget_wrong_codes
from tests.operators.people import operator, program
from tests.support.commands import printed
from tests.support.hand import Hand
from tests.transports.admin.pages import ACTIONS, every_page

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("whole_step")]
PASSWORD = "correct horse battery staple"
PROOF = "/admin/proof/"
JSON = "application/json"


@pytest.fixture
def ada() -> User:
    return User.objects.create_superuser("ada", password=PASSWORD)


@pytest.fixture
def client(ada: User, hand: Hand) -> Client:
    """Return the client of an operator whose login is longer ago than a proof counts."""
    client = Client()
    client.post(reverse("admin:login"), {"username": "ada", "password": PASSWORD})
    hand.on(minutes=16)
    return client


def place_of(answer: Any) -> str:
    return str(answer.headers.get("Location", "")).partition("?")[0]


def key_form(**more: str) -> dict[str, str]:
    return {"principal": "olga", "tenant": "default", "scopes": "*"} | more


SWITCHED_FORM = "tasks_app_oauthclient_add"
SWITCHED = {("tasks_app_oauthclient_changelist", action) for action in ("change_client", "enable", "rotate")}
"""The form and the actions of pages that are there with A2A_OAUTH alone."""


@pytest.mark.parametrize("name", sorted(proof.FORMS - {SWITCHED_FORM}))
def test_a_form_that_gives_rights_asks_for_the_password_again(client: Client, ada: User, name: str) -> None:
    place = reverse(f"admin:{name}", args=[ada.pk] if name.endswith(("change", "password_change")) else [])
    if "group_change" in name:
        # Tests that empty the tables make the roles again, with other ids.
        place = reverse(f"admin:{name}", args=[Group.objects.earliest("pk").pk])
    for answer in (client.get(place), client.post(place, {})):
        assert place_of(answer) == PROOF
    assert place_of(client.post(PROOF, {"password": PASSWORD, "next": place})) == place
    assert client.get(place).status_code == 200


@pytest.mark.parametrize(("page", "action"), sorted(proof.ACTIONS - SWITCHED))
def test_an_action_that_gives_rights_asks_too(client: Client, page: str, action: str) -> None:
    place = reverse(f"admin:{page}")
    assert place_of(client.post(place, {"action": action})) == PROOF
    for several in ([action, "revoke"], ["revoke", action], [action, ""]):
        assert place_of(client.post(place, {"action": several, "index": "0"})) == PROOF
    assert place_of(client.post(place, {"action": "revoke"})) != PROOF
    assert client.get(place).status_code == 200, "looking needs no proof"


@pytest.mark.parametrize(("page", "action"), sorted(SWITCHED | {(SWITCHED_FORM, "")}))
def test_the_pages_of_the_oauth_server_ask_too(rf: RequestFactory, page: str, action: str) -> None:
    request = rf.post("/", {"action": action})
    request.resolver_match = ResolverMatch(lambda: None, (), {}, url_name=page)
    request.user = User()
    assert proof.is_asked_by(request)


def test_a_wrong_password_proves_nothing_and_counts_as_a_wrong_login(client: Client, settings: Any) -> None:
    place = reverse("admin:tasks_app_apikey_add")
    for _ in range(settings.A2A_LOGIN_TRIES):
        assert b"not right" in client.post(PROOF, {"password": "wrong"}).content
    assert b"wait" in client.post(PROOF, {"password": PASSWORD}).content
    assert place_of(client.post(place, key_form())) == PROOF
    assert not ApiKey.objects.exists()


def test_the_proof_needs_the_second_factor_where_it_is_on(client: Client, hand: Hand, settings: Any) -> None:
    settings.A2A_SECOND_FACTOR = True
    key, _ = enrolled(client)
    hand.on(minutes=16)
    place = reverse("admin:tasks_app_apikey_add")
    assert place_of(client.get(place)) == PROOF
    forget_wrong_codes()
    assert b"not right" in client.post(PROOF, {"password": PASSWORD, "code": "123"}).content
    forget_wrong_codes()
    assert place_of(client.post(PROOF, {"password": PASSWORD, "code": code_of(key, 1), "next": place})) == place


def test_an_operator_who_only_looks_is_not_asked(hand: Hand, ada: User) -> None:
    client = Client()
    client.force_login(operator(AUDITOR))
    hand.on(minutes=16)
    assert client.get(reverse("admin:auth_user_change", args=[ada.pk])).status_code == 200


def test_a_proof_sends_the_browser_to_our_own_pages_only(client: Client) -> None:
    assert place_of(client.post(PROOF, {"password": PASSWORD, "next": "https://evil.example/"})) == "/admin/"


def test_the_setting_switches_the_question_off(client: Client, settings: Any) -> None:
    settings.A2A_PROOF_MINUTES = 0
    assert client.get(reverse("admin:tasks_app_apikey_add")).status_code == 200


RIGHTS = [(each, name) for each in RESOURCES for name, verb in each.verbs().items() if verb.gives_rights]


@pytest.mark.parametrize(("resource", "verb"), RIGHTS, ids=[f"{each.segment}-{verb}" for each, verb in RIGHTS])
def test_a_token_without_the_permission_gives_no_rights(resource: Any, verb: str) -> None:
    robot, other = program(ADMINISTRATOR, administers=False), operator(AUDITOR)
    one = f"{other.pk}/" if resource.verbs()[verb].one else ""
    name = "" if verb == "create" else f"{verb.replace('_', '-')}/"
    answer = robot.post(f"{resource.segment}/{one}{name}")
    assert answer.status_code == 403
    assert "--administer" in answer.json()["detail"] or resource.segment == "tokens"


BY_SCOPES = {"keys": {"create", "rotate"}, "accounts": {"change", "create", "enable"}}
"""Verbs that give rights unless the scopes only read, by resource."""
GIVES_NONE = {
    "accounts": {"disable", "not_before"},
    "batches": {"cancel"},
    "budgets": {"create", "reset", "remove"},
    "clients": {"disable", "revoke"},
    "deliveries": {"send_again", "give_up"},
    "keys": {"revoke"},
    "limits": {"create", "remove"},
    "logins": {"unlock"},
    "memory": {"remove"},
    "receivers": {"agree", "forget"},
    "relays": {"logout"},
    "roles": {"remove"},
    "shared-streams": {"close", "pause", "resume"},
    "slack-questions": {"send_again", "drop"},
    "slack-workspaces": {"disable"},
    "tasks": {"cancel"},
    "tokens": {"revoke"},
    "users": {"details", "disable", "unlink"},
    "webhooks": {"disable", "enable", "show_secret"},
    "workflows": {"cancel"},
}
"""Verbs that give nobody rights, by resource. A new verb is either here or asks for a proof."""


def test_every_verb_gives_rights_or_is_listed_as_one_that_does_not() -> None:
    free = {each.segment: {name for name, verb in each.verbs().items() if not verb.gives_rights} for each in RESOURCES}
    listed = {name: BY_SCOPES.get(name, set()) | GIVES_NONE.get(name, set()) for name in {*BY_SCOPES, *GIVES_NONE}}
    assert {name: verbs for name, verbs in free.items() if verbs} == listed


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: str(resource.segment))
def test_the_admin_asks_for_a_proof_where_the_api_does(resource: Any, ada: User, rf: RequestFactory) -> None:
    pages, place = every_page().get(resource.model), resource.model._meta.label_lower.replace(".", "_")
    rights = {name for each, name in RIGHTS if each is resource} | BY_SCOPES.get(resource.segment, set())
    actions = {name if isinstance(name, str) else name.__name__ for name in pages.actions} if pages else set()
    asking = {action for page, action in proof.ACTIONS if page == f"{place}_changelist"}
    assert asking == {name for name in actions if ACTIONS.get(name, name) in rights}
    request = rf.get("/")
    request.user = ada
    if pages and pages.has_add_permission(request) and "create" in rights:
        assert f"{place}_add" in proof.FORMS


@pytest.mark.parametrize("scopes", ["tasks:read *", "tasks:write", "acp:tasks:cancel tasks:read", "of-an-agent"])
def test_a_key_whose_scopes_act_needs_the_permission(scopes: str) -> None:
    robot, chief = program(ADMINISTRATOR, administers=False), program(ADMINISTRATOR)
    answer = robot.post("keys/", principal="olga", scopes=scopes)
    assert (answer.status_code, "--administer" in answer.json()["detail"]) == (403, True)
    row = chief.post("keys/", principal="olga", scopes=scopes).json()["id"]
    assert robot.post(f"keys/{row}/rotate/").status_code == 403
    assert chief.post(f"keys/{row}/rotate/").status_code == 200


def test_a_key_whose_scopes_only_read_needs_none() -> None:
    robot = program(ADMINISTRATOR, administers=False)
    scopes = "tasks:read acp:tasks:read acp:streams:read acp:agent:identify"
    row = robot.post("keys/", principal="olga", scopes=scopes).json()["id"]
    assert robot.post(f"keys/{row}/rotate/").status_code == 200


def test_an_account_whose_scopes_act_needs_the_permission() -> None:
    robot, chief = program(ADMINISTRATOR, administers=False), program(ADMINISTRATOR)
    account = {"issuer": "certificate", "subject": "dns:robot.example", "principal": "olga"}
    assert robot.post("accounts/", **account, scopes="tasks:cancel").status_code == 403
    row = chief.post("accounts/", **account, scopes="tasks:cancel").json()["id"]
    assert robot.post(f"accounts/{row}/change/", scopes="tasks:write").status_code == 403
    assert robot.post(f"accounts/{row}/change/", scopes="tasks:read").status_code == 200
    assert chief.post(f"accounts/{row}/change/", scopes="tasks:cancel").status_code == 200
    assert robot.post(f"accounts/{row}/disable/").status_code == 200
    assert robot.post(f"accounts/{row}/enable/").status_code == 403
    assert chief.post(f"accounts/{row}/enable/").status_code == 200
    reader = account | {"subject": "dns:reader.example", "scopes": "tasks:read"}
    assert robot.post("accounts/", **reader).status_code == 201


def test_a_key_of_all_scopes_needs_the_permission_and_others_do_not() -> None:
    robot, chief = program(ADMINISTRATOR, administers=False), program(ADMINISTRATOR)
    assert robot.post("keys/", principal="olga").status_code == 403
    assert robot.post("keys/", principal="olga", scopes="tasks:read *").status_code == 403
    assert robot.post("keys/", principal="olga", scopes="tasks:read").status_code == 201
    whole = chief.post("keys/", principal="olga").json()["id"]
    assert robot.post(f"keys/{whole}/rotate/").status_code == 403
    assert chief.post(f"keys/{whole}/rotate/").status_code == 200


def test_a_session_of_the_api_needs_a_new_proof(client: Client, ada: User) -> None:
    assert client.post("/api/v1/tokens/", {"name": "ci"}, content_type=JSON).status_code == 403
    body = {"username": "eve", "roles": [ADMINISTRATOR]}
    answer = client.post("/api/v1/users/", body, content_type=JSON)
    assert (answer.status_code, "/admin/proof/" in answer.json()["detail"]) == (403, True)
    client.post(PROOF, {"password": PASSWORD})
    assert client.post("/api/v1/users/", body, content_type=JSON).status_code == 201


def test_a_command_makes_a_token_that_administers_only_when_asked() -> None:
    name = operator(ADMINISTRATOR).username
    assert [
        printed("a2a", "operators", "token", name, *words)[0]["administers"] for words in ((), ("--administer",))
    ] == [False, True]
