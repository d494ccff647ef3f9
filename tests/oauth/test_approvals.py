"""The end of approvals: with the access of their operator to the admin, and with the operator's password."""

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

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


@pytest.mark.parametrize("door", ["command", "api", "own-page", "form", "action"])
def test_an_approval_ends_with_the_password_of_its_operator(
    site: Site, browser: Browser, zoe: tuple[dict[str, Any], Browser], door: str
) -> None:
    user, own = zoe
    codes = [query_of(own.approve(address(site), user["username"]))["code"] for _ in range(2)]
    token = exchange(site, codes[0]).json()
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
    until(lambda: site.call(token["access_token"]) == 401, "the token is refused")
    assert not is_active(site, token["access_token"])
    assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
    assert refused(exchange(site, codes[1])) == (400, "invalid_grant")


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
