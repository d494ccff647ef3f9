"""Entries of the audit for codes and refresh tokens that are used twice, which may mean that they were stolen."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.oauth.browser import Browser
from tests.oauth.conftest import Site
from tests.oauth.flows import code, exchange, is_active, refresh, refused

pytestmark = pytest.mark.storage


def entries(site: Site) -> list[Any]:
    """Return the entries, the oldest first."""
    columns = "method, caller, tenant, credential, peer, door, outcome"
    query = f"select {columns} from tasks_app_auditentry where method = 'oauth2/reuse' order by id"  # noqa: S608
    return [tuple(row) for row in site.server.rows(query)]


def entry(site: Site) -> Any:
    """Return the entry of tokens of the client app that have ended."""
    return ("oauth2/reuse", "olga", "default", f"oauth:{site.programs['app'].pk}", "127.0.0.1", "http", "error")


def test_a_code_that_is_used_twice_has_one_entry(site: Site, browser: Browser) -> None:
    before, value = entries(site), code(site, browser)
    token = refresh(site, exchange(site, value).json()["refresh_token"]).json()
    assert refused(exchange(site, value, "rival")) == (400, "invalid_grant")
    assert entries(site) == before, "the tokens of another client did not end"
    for _ in range(2):
        assert refused(exchange(site, value)) == (400, "invalid_grant")
        assert entries(site) == [*before, entry(site)]
    assert not is_active(site, token["access_token"])


USED_MEANWHILE = {
    True: """
        create function use_up() returns trigger language plpgsql as
        $$ begin delete from oauth2_provider_grant; return null; end $$;
        create trigger used_meanwhile after insert on oauth2_provider_accesstoken
        for each row execute function use_up()
    """,
    False: """
        create trigger used_meanwhile after insert on oauth2_provider_accesstoken
        begin delete from oauth2_provider_grant; end
    """,
}
"""Statements after which codes are gone as soon as one has led to a token, by whether the database is PostgreSQL."""


def test_a_code_that_another_request_uses_meanwhile_ends_the_tokens_of_both(site: Site, browser: Browser) -> None:
    before, value, on_postgres = entries(site), code(site, browser), "://" in site.server.database
    site.server.execute(USED_MEANWHILE[on_postgres])
    try:
        assert refused(exchange(site, value)) == (400, "invalid_grant")
    finally:
        site.server.execute(f"drop trigger used_meanwhile{' on oauth2_provider_accesstoken' if on_postgres else ''}")
    assert entries(site) == [*before, entry(site)]


@pytest.mark.parametrize("sender", ["app", "rival"])
def test_a_refresh_token_that_is_used_twice_has_one_entry(site: Site, browser: Browser, sender: str) -> None:
    before, token = entries(site), exchange(site, code(site, browser)).json()
    newer = refresh(site, token["refresh_token"]).json()
    assert entries(site) == before
    for _ in range(2):
        assert refused(refresh(site, token["refresh_token"], sender)) == (400, "invalid_grant")
        assert entries(site) == [*before, entry(site)]
    assert not is_active(site, newer["access_token"])


def test_a_refresh_token_that_is_used_at_once_has_one_entry(site: Site, browser: Browser) -> None:
    before, token = entries(site), exchange(site, code(site, browser)).json()["refresh_token"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: refresh(site, token), range(8)))
    assert {answer.status_code for answer in answers} <= {200, 400}
    assert entries(site) == [*before, entry(site)]


def test_a_token_that_its_client_revoked_has_no_entry(site: Site, browser: Browser) -> None:
    before, token = entries(site), exchange(site, code(site, browser)).json()
    assert site.form("app", "/oauth2/revoke", token=token["refresh_token"]).status_code == 200
    assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
    assert entries(site) == before
