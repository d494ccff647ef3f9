"""The end of approvals: with the access of their operator to the admin, and with the password, the second factor and
the right to approve of that operator."""

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import Any

import httpx
import psycopg
import pytest

from tasks_app.operators.approvals import TO_APPROVE
from tests.conftest import until
from tests.oauth.browser import Browser
from tests.oauth.conftest import Site
from tests.oauth.flows import address, code, exchange, is_active, query_of, refresh, refused
from tests.support.servers import NO_TLS

pytestmark = pytest.mark.storage
NEW = "another horse battery staple"
TWICE = {"password1": NEW, "password2": NEW, "usable_password": "true"}


@pytest.fixture
def zoe(site: Site, request: pytest.FixtureRequest) -> Iterator[tuple[dict[str, Any], Browser]]:
    """Return an operator of this test alone, as a command printed it, and their browser."""
    name = f"zoe-{request.node.callspec.id}"
    user = site.command("make", name, "--role", "administrator", "--all-tenants", noun="users")
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        yield user, Browser(client, user["password"])


def approvals(site: Site, user: dict[str, Any], own: Browser) -> tuple[dict[str, Any], str]:
    """Let the operator approve a client twice. Return the tokens of one approval, and the unused code of the other."""
    first, second = (query_of(own.approve(address(site), user["username"]))["code"] for _ in range(2))
    return exchange(site, first).json(), second


def assert_ended(site: Site, token: dict[str, Any], unused: str) -> None:
    """Check that the tokens and the code of the approvals are refused."""
    assert not is_active(site, token["access_token"])
    until(lambda: site.call(token["access_token"]) == 401, "the token is refused")
    assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
    assert refused(exchange(site, unused)) == (400, "invalid_grant")


@pytest.mark.parametrize("door", ["command", "api", "own-page", "form", "action"])
def test_an_approval_ends_with_the_password_of_its_operator(
    site: Site, browser: Browser, zoe: tuple[dict[str, Any], Browser], door: str
) -> None:
    user, own = zoe
    token, unused = approvals(site, user, own)
    form = f"/admin/auth/user/{user['id']}/password/"
    match door:
        case "command":
            site.command("password", user["username"], noun="users")
        case "api":
            assert browser.send(f"/api/v1/users/{user['id']}/password/").status_code == 200
        case "own-page":
            fields = {"old_password": user["password"], "new_password1": NEW, "new_password2": NEW}
            assert own.submit("/admin/password_change/", **fields).status_code == 302
        case "form":
            assert browser.submit(form, **TWICE).status_code == 302
        case "action":
            act = {"action": "password", "_selected_action": str(user["id"]), "post": "yes"}
            assert NEW not in browser.submit("/admin/auth/user/", **act).text
    assert_ended(site, token, unused)


@pytest.mark.parametrize("door", ["role-command", "role-api", "role-form", "factor-command"])
def test_an_approval_ends_with_the_role_or_the_second_factor_of_its_operator(
    site: Site, browser: Browser, zoe: tuple[dict[str, Any], Browser], door: str
) -> None:
    user, own = zoe
    token, unused = approvals(site, user, own)
    match door:
        case "role-command":
            site.command("role", user["username"], "viewer", noun="users")
        case "role-api":
            assert browser.send(f"/api/v1/users/{user['id']}/role/", roles=["viewer"]).status_code == 200
        case "role-form":
            fields = {"username": user["username"], "is_active": "on", "is_staff": "on"}
            inline = {"reach-TOTAL_FORMS": "0", "reach-INITIAL_FORMS": "0"}
            assert browser.submit(f"/admin/auth/user/{user['id']}/change/", **fields, **inline).status_code == 302
        case "factor-command":
            site.command("reset-second-factor", user["username"], noun="users")
    assert_ended(site, token, unused)


@pytest.mark.parametrize(
    "door", ["change-command", "change-api", "change-form", "remove-command", "remove-api", "remove-form"]
)
def test_an_approval_ends_when_the_role_of_its_operator_loses_the_permission(
    site: Site, browser: Browser, zoe: tuple[dict[str, Any], Browser], door: str
) -> None:
    user, own = zoe
    role = site.command("make", f"clients-{door}", "tasks_app.view_oauthclient", TO_APPROVE, noun="roles")
    site.command("role", user["username"], role["name"], "viewer", noun="users")
    token, unused = approvals(site, user, own)
    api, form = f"/api/v1/roles/{role['id']}", f"/admin/auth/group/{role['id']}"
    match door:
        case "change-command":
            site.command("change", role["name"], "tasks_app.view_oauthclient", noun="roles")
        case "change-api":
            answer = browser.send(f"{api}/change/", permissions=["tasks_app.view_oauthclient"])
            assert answer.status_code == 200
        case "change-form":
            assert browser.submit(f"{form}/change/", name=role["name"]).status_code == 302
        case "remove-command":
            site.command("remove", role["name"], noun="roles")
        case "remove-api":
            assert browser.send(f"{api}/remove/").status_code == 200
        case "remove-form":
            assert browser.submit(f"{form}/delete/").status_code == 302
    assert_ended(site, token, unused)


def test_an_approval_stays_with_another_role_that_may_approve(site: Site) -> None:
    role = site.command("make", "spare", TO_APPROVE, noun="roles")
    user = site.command("make", "spared", "--role", "administrator", "--all-tenants", noun="users")
    site.command("role", "spared", "administrator", role["name"], noun="users")
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        token = exchange(site, query_of(Browser(client, user["password"]).approve(address(site), "spared"))["code"])
    site.command("remove", "spare", noun="roles")
    assert is_active(site, token.json()["access_token"])


def test_an_approval_stays_with_a_role_that_may_approve(site: Site) -> None:
    user = site.command("make", "stays", "--role", "administrator", "--all-tenants", noun="users")
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        token = exchange(site, query_of(Browser(client, user["password"]).approve(address(site), "stays"))["code"])
    site.command("role", "stays", "administrator", "viewer", noun="users")
    assert is_active(site, token.json()["access_token"])


def test_no_approval_outlives_a_password_that_is_set_meanwhile(site: Site) -> None:
    user = site.command("make", "slow", "--role", "administrator", "--all-tenants", noun="users")
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client, ThreadPoolExecutor(1) as pool:
        browser = Browser(client, user["password"])
        assert "code" in query_of(browser.approve(address(site), "slow"))
        with changing(site, f"update auth_user set password = 'another' where id = {user['id']}"):  # noqa: S608
            approval = pool.submit(browser.approve, address(site), "slow")
            wait([approval], 3)
        answer = approval.result()
    assert "code=" not in answer.headers.get("Location", "")


@contextmanager
def changing(site: Site, statement: str) -> Iterator[None]:
    """Change rows of the server's database in a transaction that ends with the block."""
    database = site.server.database
    if "://" in database:
        with psycopg.connect(database) as connection:
            connection.execute(statement)
            yield
        return
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("begin immediate")
        connection.execute(statement)
        yield
        connection.execute("commit")


REFRESHED_MEANWHILE = """
    insert into oauth2_provider_accesstoken
        (token, token_checksum, user_id, application_id, expires, scope, resource, created, updated)
        select '', 'late', user_id, application_id, expires, scope, resource, created, updated
        from oauth2_provider_accesstoken where id = old.access_token_id;
    insert into oauth2_provider_refreshtoken
        (token, token_checksum, user_id, application_id, access_token_id, resource, created, updated)
        select '', 'late', user_id, application_id, id, resource, created, updated
        from oauth2_provider_accesstoken where token_checksum = 'late';
"""
"""Statements that store what another request gets for a refresh token at the moment at which that is deleted."""


def test_tokens_that_another_request_gets_meanwhile_end_with_the_password(site: Site) -> None:
    user = site.command("make", "late", "--role", "administrator", "--all-tenants", noun="users")
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        exchange(site, query_of(Browser(client, user["password"]).approve(address(site), "late"))["code"])
    on_postgres, table = "://" in site.server.database, "oauth2_provider_refreshtoken"
    if on_postgres:
        site.server.execute(
            "create function refresh() returns trigger language plpgsql as "
            f"$$ begin {REFRESHED_MEANWHILE} return null; end $$; create trigger meanwhile after delete on {table} "
            "for each row when (old.token_checksum <> 'late') execute function refresh()"
        )
    else:
        site.server.execute(
            f"create trigger meanwhile after delete on {table} when old.token_checksum <> 'late' "
            f"begin {REFRESHED_MEANWHILE} end"
        )
    try:
        site.command("password", "late", noun="users")
    finally:
        site.server.execute(f"drop trigger meanwhile{f' on {table}' if on_postgres else ''}")
    for table in ("accesstoken", "refreshtoken"):
        query = f"select count(*) from oauth2_provider_{table} where user_id = {user['id']}"  # noqa: S608
        assert site.server.rows(query) == [(0,)]


def test_an_approval_does_not_come_back_with_its_operator(site: Site, browser: Browser) -> None:
    token, value = exchange(site, code(site, browser)).json(), code(site, browser)
    site.command("disable", "ada", noun="users")
    site.command("enable", "ada", noun="users")
    assert not is_active(site, token["access_token"])
    assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
    assert refused(exchange(site, value)) == (400, "invalid_grant")


def test_an_approval_ends_with_the_access_of_its_operator_to_the_admin(site: Site, browser: Browser) -> None:
    token, value = exchange(site, code(site, browser)).json(), code(site, browser)
    change = "update auth_user set is_staff = {} where username = 'ada'"
    site.server.execute(change.format("false"))
    try:
        assert not is_active(site, token["access_token"])
        until(lambda: site.call(token["access_token"]) == 401, "the token is refused")
        assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
        assert refused(exchange(site, value)) == (400, "invalid_grant")
    finally:
        site.server.execute(change.format("true"))
