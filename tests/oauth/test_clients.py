"""The clients of the OAuth server, as operators handle them."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tasks_app.callers.access import digests
from tasks_app.models import OAuthClient
from tasks_app.models.acts import Act
from tasks_app.oauth import clients
from tasks_app.oauth.clients import NewClient
from tasks_app.operators.audit import COMMAND, Operator
from tests.conftest import until
from tests.oauth.browser import Browser
from tests.oauth.conftest import Site
from tests.support.hand import Hand

BY = Operator("ada", COMMAND, "because")
CODE: dict[str, Any] = {"grant": "authorization-code", "redirect_uris": ["https://app.example/"]}


def new(**more: Any) -> NewClient:
    return NewClient(**{"name": "robot", "principal": "olga", "scopes": "tasks:read"} | more)


@pytest.mark.storage
@pytest.mark.django_db
def test_a_secret_is_stored_as_its_digest_and_rotates_with_an_overlap(hand: Hand) -> None:
    client, first = clients.add(new(), BY)
    assert client.digests(hand()) == [digests(first)[0]]
    second = clients.rotate(client, BY, timedelta(hours=1))
    assert client.digests(hand()) == [digests(second)[0], digests(first)[0]]
    assert client.digests(hand() + timedelta(hours=1)) == [digests(second)[0]]
    third = clients.rotate(client, BY, timedelta(0))
    assert client.digests(hand()) == [digests(third)[0]]
    assert list(Act.objects.order_by("id").values_list("verb", "reason")) == [
        ("make", "because"),
        ("rotate", "because"),
        ("rotate", "because"),
    ]
    texts = "".join(f"{act.before}{act.after}{act.name}" for act in Act.objects.all())
    assert not any(text in texts for text in (first, second, third, digests(first)[0]))


@pytest.mark.storage
@pytest.mark.django_db
def test_a_rotation_that_is_sent_twice_ends_no_secret_in_use(hand: Hand) -> None:
    client, first = clients.add(new(), BY)
    second = clients.rotate(client, BY, timedelta(hours=1))
    with pytest.raises(ValueError, match="a former secret is valid until"):
        clients.rotate(client, BY, timedelta(hours=24))
    assert client.digests(hand()) == [digests(second)[0], digests(first)[0]]
    hand.on(hours=1)
    third = clients.rotate(client, BY, timedelta(hours=1))
    assert client.digests(hand()) == [digests(third)[0], digests(second)[0]]
    assert Act.objects.filter(verb="rotate").count() == 2


@pytest.mark.storage
@pytest.mark.django_db
def test_a_client_is_disabled_enabled_and_revoked_once_each() -> None:
    client, _ = clients.add(new(), BY)
    assert [clients.enable(client, BY), clients.disable(client, BY), clients.disable(client, BY)] == [
        False,
        True,
        False,
    ]
    assert not client.is_active
    assert clients.enable(client, BY)
    assert client.is_active
    assert [clients.revoke(client, BY), clients.revoke(client, BY), clients.enable(client, BY)] == [True, False, False]
    assert not client.is_active
    with pytest.raises(ValueError, match="was revoked"):
        clients.rotate(client, BY, timedelta(0))
    assert list(Act.objects.order_by("id").values_list("verb", flat=True)) == ["make", "disable", "enable", "revoke"]


@pytest.mark.storage
@pytest.mark.django_db
def test_the_scopes_and_addresses_of_a_client_change_each_by_itself() -> None:
    client, _ = clients.add(new(**CODE), BY)
    assert clients.change(client, BY, scopes="tasks:read  tasks:write")
    assert (client.scopes, client.redirect_uris) == ("tasks:read tasks:write", "https://app.example/")
    assert clients.change(client, BY, redirect_uris=["https://a.example/", "https://b.example/"])
    assert client.redirect_uris == "https://a.example/ https://b.example/"
    assert not clients.change(client, BY, "tasks:read tasks:write", client.redirect_uris.split())
    for wrong in ({"scopes": "*"}, {"redirect_uris": []}, {"redirect_uris": ["http://a.example/"]}):
        with pytest.raises(ValueError, match=r"no \* for all|needs a redirect URI|cannot be a redirect URI"):
            clients.change(client, BY, **wrong)  # type: ignore[arg-type]  # each value is of its name
    clients.revoke(client, BY)
    with pytest.raises(ValueError, match="was revoked"):
        clients.change(client, BY, scopes="tasks:read")
    acts = Act.objects.filter(verb="change").order_by("id").values_list("before", "after")
    assert [(json.loads(before), json.loads(after)) for before, after in acts] == [
        ({"scopes": "tasks:read"}, {"scopes": "tasks:read tasks:write"}),
        (
            {"redirect_uris": "https://app.example/"},
            {"redirect_uris": "https://a.example/ https://b.example/"},
        ),
    ]


@pytest.mark.storage
@pytest.mark.django_db
def test_a_client_that_is_revoked_meanwhile_gets_no_secret() -> None:
    client, first = clients.add(new(), BY)
    stale = OAuthClient.objects.get(pk=client.pk)
    clients.revoke(client, BY)
    with pytest.raises(ValueError, match="was revoked"):
        clients.rotate(stale, BY, timedelta(0))
    assert OAuthClient.objects.get().digest == digests(first)[0]
    assert not Act.objects.filter(verb="rotate").exists()


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wish", "reason"),
    [
        ({"scopes": "*"}, "no \\* for all"),
        ({"scopes": " "}, "one by one"),
        ({"scopes": 'tasks:read "x"'}, "a scope cannot be called '\"x\"'"),
        ({"scopes": "tâches"}, "a scope cannot be called 'tâches'"),
        ({"tenant": "admin"}, "cannot be called"),
        ({"grant": "password"}, "client-credentials or authorization-code"),
        ({"grant": "authorization-code"}, "needs a redirect URI"),
        ({"public": True}, "has a secret"),
        ({"redirect_uris": ["https://app.example/"]}, "no redirect URI"),
        *(
            (CODE | {"redirect_uris": [uri]}, "cannot be a redirect URI")
            for uri in (
                *("http://app.example/", "http://localhost/", "https://app.example/#x", "https://user@app.example/"),
                *("https:///x", "javascript:alert(1)", "app.example", "https://app.example/ x", "https://[::1", ""),
                *("https://app.example/\n", "data:text/html,x", "https://app.example:0/", "https://äpp.example/"),
            )
        ),
    ],
    ids=str,
)
def test_a_client_that_could_not_work_is_not_stored(wish: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        clients.add(new(**wish), BY)
    assert not OAuthClient.objects.exists()
    assert not Act.objects.exists()


@pytest.mark.django_db
def test_a_public_client_has_no_secret() -> None:
    client, secret = clients.add(new(**CODE, public=True), BY)
    assert (secret, client.digest, client.client_type) == ("", None, "public")
    with pytest.raises(ValueError, match="has no secret"):
        clients.rotate(client, BY, timedelta(0))


@pytest.mark.django_db
def test_the_command_says_that_the_server_is_off() -> None:
    with pytest.raises(CommandError, match="set A2A_OAUTH=true"):
        call_command("a2a", "clients", "list")


@pytest.mark.storage
def test_operators_rotate_disable_and_revoke_by_command(site: Site) -> None:
    def token() -> int:
        return site.form("temporary", "/oauth2/token", grant_type="client_credentials").status_code

    line = site.command("add", "temporary", "--principal", "olga", "--scopes", "tasks:read")
    site.add("temporary", line)
    number, access = str(line["id"]), site.token("temporary")["access_token"]
    assert site.call(access) == 200
    former = site.programs["temporary"]
    site.add("temporary", site.command("rotate", number))
    assert token() == 200
    site.programs["former"] = former
    assert site.form("former", "/oauth2/token", grant_type="client_credentials").status_code == 200
    site.add("temporary", site.command("rotate", number, "--overlap-hours", "0"))
    assert token() == 200
    assert site.form("former", "/oauth2/token", grant_type="client_credentials").status_code == 401
    assert site.command("disable", number)["disabled_at"]
    assert token() == 401
    until(lambda: site.call(access) == 401, "the token of a disabled client is refused")
    assert site.command("enable", number)["disabled_at"] is None
    until(lambda: site.call(access) == 200, "the token is accepted again")
    assert site.command("revoke", number)["revoked_at"]
    assert token() == 401
    until(lambda: site.call(access) == 401, "the token of a revoked client is refused")


def test_operators_see_disable_and_revoke_clients_in_the_admin(site: Site, browser: Browser) -> None:
    line = site.command("add", "visible", "--principal", "olga", "--scopes", "tasks:read")
    site.add("visible", line)
    number, path = str(line["id"]), "/admin/tasks_app/oauthclient/"
    page = browser.open(path)
    assert line["client_id"] in page.text
    assert line["client_secret"] not in page.text
    assert browser.open(f"{path}{number}/change/").status_code == 200

    def press(name: str) -> int:
        fields = {"action": name, "_selected_action": number, "post": "yes", "reason": "a test"}
        return browser.submit(path, **fields).status_code

    def token() -> int:
        return site.form("visible", "/oauth2/token", grant_type="client_credentials").status_code

    assert (token(), press("disable"), token()) == (200, 302, 401)
    assert (press("enable"), token()) == (302, 200)
    assert (press("revoke"), token(), press("enable"), token()) == (302, 401, 302, 401)
    index = browser.open("/admin/")
    assert "oauthclient" in index.text
    assert "oauth2_provider" not in index.text
    assert browser.open("/admin/oauth2_provider/accesstoken/").status_code in {403, 404}


ADMIN = "/admin/tasks_app/oauthclient/"
WISH = {"name": "formed", "principal": "olga", "tenant": "default", "scopes": "tasks:read"}
ROBOT = WISH | {"grant": "client-credentials", "redirect_uris": "", "reason": "a test"}


def texts_of(page: str) -> list[str]:
    """Return the texts of a page that are ids and secrets of clients."""
    return re.findall(r"<(?:bdi|pre)[^>]*>(tds_[\w-]+|[0-9a-f]{32})</", page)


def test_the_admin_adds_and_rotates_a_client_and_shows_each_secret_once(site: Site, browser: Browser) -> None:
    def token() -> int:
        return site.form("formed", "/oauth2/token", grant_type="client_credentials").status_code

    page = browser.submit(f"{ADMIN}add/", **ROBOT)
    assert "no-store" in page.headers["Cache-Control"]
    client_id, secret = texts_of(page.text)
    (row,) = browser.open("/api/v1/clients/?client_id=" + client_id).json()["results"]
    site.add("formed", {"id": row["id"], "client_id": client_id, "client_secret": secret})
    assert token() == 200
    chosen = {"action": "rotate", "_selected_action": str(row["id"])}
    asked = browser.submit(ADMIN, **chosen, index="0")
    assert 'name="overlap_hours" value="24"' in asked.text
    rotated = browser.submit(ADMIN, **chosen, post="yes", overlap_hours="0", reason="a leak")
    assert "no-store" in rotated.headers["Cache-Control"]
    (second,) = texts_of(rotated.text)
    assert (second != secret, token()) == (True, 401)
    site.add("formed", {"id": row["id"], "client_id": client_id, "client_secret": second})
    assert token() == 200
    for text in (browser.open(ADMIN).text, browser.open(f"{ADMIN}{row['id']}/change/").text):
        assert not any(each in text for each in (secret, second))
    acts = browser.open("/api/v1/acts/?kind=OAuth+client").json()["results"]
    ours = [(act["verb"], act["door"], act["reason"]) for act in acts if act["object_id"] == str(row["id"])]
    assert ours == [("rotate", "admin", "a leak"), ("make", "admin", "a test")]


def test_fewer_scopes_of_a_client_hold_for_its_tokens_whichever_door_sets_them(site: Site, browser: Browser) -> None:
    line = site.command("add", "narrow", "--principal", "olga", "--scopes", "tasks:read tasks:write")
    site.add("narrow", line)
    number, access = str(line["id"]), site.token("narrow")["access_token"]
    assert site.call(access) == 200
    assert site.command("change", number, "--scopes", "tasks:write")["scopes"] == "tasks:write"
    until(lambda: site.call(access) == 403, "the token has lost the scope")
    path = f"/api/v1/clients/{number}/change/"
    assert browser.send(path, scopes="tasks:read tasks:write").json()["scopes"] == "tasks:read tasks:write"
    until(lambda: site.call(access) == 200, "the token has it again")
    assert browser.send(path, scopes="tasks:read tasks:write").status_code == 409
    assert (browser.send(path).status_code, browser.send(path, scopes="*").status_code) == (400, 400)
    chosen = {"action": "change_client", "_selected_action": number, "post": "yes", "redirect_uris": ""}
    assert browser.submit(ADMIN, **chosen, scopes="tasks:write").headers["Location"] == ADMIN
    until(lambda: site.call(access) == 403, "the token has lost it again")
    browser.submit(ADMIN, **chosen, scopes="")
    assert "The client has these values already." in browser.open(ADMIN).text


def test_a_public_client_is_added_in_the_admin_without_a_secret(browser: Browser) -> None:
    wish = ROBOT | {
        "name": "open",
        "grant": "authorization-code",
        "public": "on",
        "redirect_uris": "https://a.example/",
    }
    assert browser.submit(f"{ADMIN}add/", **wish).headers["Location"] == ADMIN
    (row,) = [each for each in browser.open("/api/v1/clients/").json()["results"] if each["name"] == "open"]
    assert (row["type"], row["redirect_uris"]) == ("public", ["https://a.example/"])
    rotation = {"action": "rotate", "_selected_action": str(row["id"]), "post": "yes", "overlap_hours": "0"}
    assert browser.submit(ADMIN, **rotation).headers["Location"] == ADMIN
    assert "public client has no secret." in browser.open(ADMIN).text


def test_the_form_of_a_client_says_what_is_wrong(browser: Browser) -> None:
    for change, sentence in (
        ({"scopes": "*"}, "there is no * for all"),
        ({"redirect_uris": "https://a.example/"}, "has a secret and no redirect URI"),
        ({"grant": "authorization-code", "redirect_uris": "http://a.example/"}, "cannot be a redirect URI"),
    ):
        page = browser.submit(f"{ADMIN}add/", **ROBOT | {"name": "wrong"} | change)
        assert (page.status_code, sentence in page.text) == (200, True), sentence
    assert "wrong" not in [each["name"] for each in browser.open("/api/v1/clients/").json()["results"]]


def test_the_form_of_a_client_takes_tenants_of_the_reach_alone(site: Site, fresh_browser: Browser) -> None:
    page = fresh_browser.open(f"{ADMIN}add/", "lisa")
    assert (page.status_code, "abroad" in page.text) == (200, False)
    refusal = fresh_browser.submit(f"{ADMIN}add/", **ROBOT | {"name": "far", "tenant": "abroad"})
    assert "The tenant abroad is not one of yours." in refusal.text
    foreign = {"action": "rotate", "_selected_action": str(site.programs["foreigner"].pk), "post": "yes"}
    answer = fresh_browser.submit(ADMIN, **foreign, overlap_hours="0")
    assert texts_of(answer.text) == []
    assert site.form("foreigner", "/oauth2/token", grant_type="client_credentials").status_code == 200


def test_an_operator_without_the_permission_adds_no_client(fresh_browser: Browser) -> None:
    assert fresh_browser.open(f"{ADMIN}add/", "vera").status_code == 403


def test_programs_of_operators_handle_clients_through_the_api(site: Site, browser: Browser) -> None:
    path = "/api/v1/clients/"
    made = browser.send(path, name="api", principal="olga", scopes="tasks:read")
    assert made.status_code == 201, made.text
    site.add("api", made.json())
    number = made.json()["id"]

    def token() -> int:
        return site.form("api", "/oauth2/token", grant_type="client_credentials").status_code

    assert token() == 200
    site.add("api", browser.send(f"{path}{number}/rotate/", overlap_hours=0).json())
    assert token() == 200
    assert browser.send(f"{path}{number}/disable/").json()["disabled_at"]
    assert token() == 401
    assert browser.send(f"{path}{number}/disable/").status_code == 409
    assert browser.send(f"{path}{number}/enable/").json()["disabled_at"] is None
    assert browser.send(f"{path}{number}/revoke/").json()["revoked_at"]
    assert token() == 401
    assert browser.send(f"{path}{number}/rotate/").status_code == 409
    assert browser.send(path, name="x", principal="olga", scopes="*").status_code == 400
    row = browser.open(f"{path}{number}/").json()
    assert "client_secret" not in row
    assert row["redirect_uris"] == []
