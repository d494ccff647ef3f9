"""Sessions of the admin as callers: off by default, for linked users alone, and from pages of this server alone."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError
from django.test import Client

from tasks_app import clock
from tasks_app.callers.schemes import evidence_in
from tasks_app.models import Act, AuditEntry, UserLink
from tasks_app.operators.roles import ADMINISTRATOR, VIEWER
from tasks_app.transports import keys
from tests.conftest import Person
from tests.operators.people import program
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("fresh_keys")]
LIST = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
PAGE = {"Sec-Fetch-Site": "same-origin"}


@pytest.fixture
def ann(settings: Any, owner: Person) -> Client:
    """Return a browser in which a user is logged in, who may read in the name of the owner."""
    settings.A2A_SCHEMES = ("bearer", "key", "session")
    settings.A2A_SECOND_FACTOR = False
    user = User.objects.create_user("ann", password="correct horse", is_staff=True)
    printed("a2a", "users", "link", "ann", "owner", "--tenant", "home", "--scopes", "tasks:read")
    browser = Client(enforce_csrf_checks=True)
    browser.get("/admin/login/")
    browser.force_login(user)
    return browser


def asked(browser: Client, wire: Any = LIST, *, path: str = "/jsonrpc", token: str | None = "", **headers: str) -> Any:
    """Return the answer to a call with the cookies of a browser."""
    keys._cache.clear()
    token = browser.cookies["csrftoken"].value if token == "" else token
    more = {"Host": "testserver"} | headers | ({"X-CSRFToken": token} if token else {})
    return browser.post(path, wire, content_type="application/json", headers=more)


def test_a_linked_user_calls_with_the_scopes_of_the_link(ann: Client, owner: Person) -> None:
    assert "result" in asked(ann, **PAGE).json()
    send = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    refused = asked(ann, LIST | {"method": "SendMessage", "params": send}, **PAGE).json()
    assert refused["error"]["data"][0]["reason"] == "MISSING_SCOPE"
    UserLink.objects.update(scopes="tasks:write")
    assert "result" in asked(ann, LIST | {"method": "SendMessage", "params": send}, **PAGE).json()
    entry = AuditEntry.objects.get()
    assert (entry.caller, entry.credential) == ("owner", f"user:{User.objects.get(username='ann').pk}")


def test_a_session_opens_nothing_by_default(ann: Client, settings: Any) -> None:
    settings.A2A_SCHEMES = ("bearer", "key")
    assert asked(ann, **PAGE).status_code == 401


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://testserver"}, 200),
        ({"Origin": "http://testserver"}, 200),
        ({}, 401),
        ({"Sec-Fetch-Site": "same-site"}, 401),
        ({"Sec-Fetch-Site": "cross-site"}, 401),
        ({"Sec-Fetch-Site": "none"}, 401),
        ({"Origin": "http://evil.example"}, 401),
        ({"Origin": "null"}, 401),
        ({"Origin": "http://[testserver"}, 401),
        ({"Sec-Fetch-Site": "same-origin", "Origin": "http://evil.example"}, 401),
        ({"Sec-Fetch-Site": "cross-site", "Origin": "http://testserver"}, 401),
    ],
)
def test_only_our_own_pages_may_use_a_session(ann: Client, headers: dict[str, str], status: int) -> None:
    assert asked(ann, **headers).status_code == status


def test_behind_a_proxy_the_public_address_is_ours(ann: Client, settings: Any) -> None:
    settings.A2A_PUBLIC_URL = "https://agents.example.com"
    assert asked(ann, **PAGE, Origin="https://agents.example.com").status_code == 200
    assert asked(ann, **PAGE, Origin="http://testserver").status_code == 401


@pytest.mark.parametrize("token", [None, "x" * 64, "a" * 32, "\u00e9"])
def test_a_session_without_the_right_token_opens_nothing(ann: Client, token: str | None) -> None:
    assert asked(ann, token=token, **PAGE).status_code == 401
    cookie, ann.cookies["csrftoken"] = ann.cookies["csrftoken"].value, "b" * 32  # type: ignore[assignment]
    assert asked(ann, token=cookie, **PAGE).status_code == 401


def test_a_read_over_rest_needs_the_token_too(ann: Client) -> None:
    token = ann.cookies["csrftoken"].value
    assert ann.get("/tasks", headers=PAGE).status_code == 401
    assert ann.get("/tasks", headers=PAGE | {"X-CSRFToken": token}).status_code == 200


def test_no_cookie_counts_in_a_handshake_of_a_socket(ann: Client) -> None:
    cookies = "; ".join(f"{name}={morsel.value}" for name, morsel in ann.cookies.items())
    meta = {
        "HTTP_COOKIE": cookies,
        "HTTP_X_CSRFTOKEN": ann.cookies["csrftoken"].value,
        "HTTP_SEC_FETCH_SITE": "same-origin",
        "HTTP_HOST": "testserver",
    }
    assert evidence_in(meta) is not None
    assert evidence_in(meta | {"HTTP_UPGRADE": "websocket"}) is None
    assert evidence_in(meta | {"HTTP_SEC_WEBSOCKET_KEY": "x"}) is None


def test_a_session_gets_no_tickets_and_makes_no_links(ann: Client) -> None:
    assert asked(ann, {}, path="/ws/ticket", **PAGE).status_code in {400, 401, 403}
    assert "url" not in asked(ann, {"taskId": "t"}, path="/links", **PAGE).content.decode()


def end_by_time(session: Any, settings: Any) -> None:
    session["began"] = (clock.now() - timedelta(days=2)).timestamp()
    session.save()


def end_by_idleness(session: Any, settings: Any) -> None:
    session["seen"] = (clock.now() - timedelta(hours=5)).timestamp()
    session.save()


def log_out(session: Any, settings: Any) -> None:
    session.flush()


def disable(session: Any, settings: Any) -> None:
    User.objects.filter(username="ann").update(is_active=False)


def take_admin_away(session: Any, settings: Any) -> None:
    User.objects.filter(username="ann").update(is_staff=False)


def change_password(session: Any, settings: Any) -> None:
    user = User.objects.get(username="ann")
    user.set_password("another horse")
    user.save()


def unlink(session: Any, settings: Any) -> None:
    printed("a2a", "users", "unlink", "ann")


def demand_second_factor(session: Any, settings: Any) -> None:
    settings.A2A_SECOND_FACTOR = True


@pytest.mark.parametrize(
    "end",
    [end_by_time, end_by_idleness, log_out, disable, take_admin_away, change_password, unlink, demand_second_factor],
)
def test_a_session_ends_as_in_the_admin(ann: Client, settings: Any, end: Any) -> None:
    assert asked(ann, **PAGE).status_code == 200
    end(ann.session, settings)
    assert asked(ann, **PAGE).status_code == 401


def test_a_key_beside_the_cookie_counts_alone(ann: Client, stranger: Person) -> None:
    wrong = {"Authorization": "Bearer tdk_unknown"}
    assert asked(ann, **PAGE, **wrong).status_code == 401


def test_a_cookie_that_no_session_can_have_opens_nothing(ann: Client) -> None:
    ann.cookies["sessionid"] = "\0" + "a" * 31
    assert asked(ann, **PAGE).status_code == 401
    assert ann.get("/admin/").status_code == 302


def test_links_are_made_by_command_and_api_with_an_act(ann: Client, owner: Person, colleague: Person) -> None:
    user = User.objects.get(username="ann")
    body = {"principal": "colleague", "tenant": "home", "scopes": "*"}
    assert program(VIEWER).post(f"users/{user.pk}/link/", **body).status_code == 403
    robot = program(ADMINISTRATOR)
    assert robot.post(f"users/{user.pk}/link/", **body).status_code == 200
    assert UserLink.objects.get().principal_id == colleague.caller.owner_id
    assert robot.post(f"users/{user.pk}/unlink/").status_code == 200
    assert robot.post(f"users/{user.pk}/unlink/").status_code == 409
    assert not UserLink.objects.exists()
    acts = Act.objects.filter(kind="user link").order_by("id")
    assert list(acts.values_list("verb", flat=True)) == ["link", "link", "unlink"]
    for words in (("link", "ann", "nobody", "--scopes", "*"), ("unlink", "ann")):
        with pytest.raises(CommandError, match=r"no principal|not linked"):
            printed("a2a", "users", *words)
