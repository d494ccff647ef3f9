"""Authorization codes with PKCE, and refresh tokens, with authlib and the real pages."""

import base64
import hashlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.oauth.browser import Browser, hidden_fields
from tests.oauth.conftest import LOOPBACK, REDIRECT, SCOPES, Site
from tests.oauth.flows import VERIFIER, address, code, exchange, is_active, query_of, refresh, refused

pytestmark = pytest.mark.storage


@pytest.mark.requirement("ACP-13")
def test_an_approved_client_gets_tokens_with_the_library(site: Site, fresh_browser: Browser) -> None:
    with site.client("app", redirect_uri=REDIRECT, code_challenge_method="S256") as client:
        url, state = client.create_authorization_url(f"{site.url}/oauth2/authorize", code_verifier=VERIFIER)
        answer = fresh_browser.approve(url)
        location = answer.headers["Location"]
        assert location.startswith(f"{REDIRECT}&")
        assert query_of(answer)["iss"] == site.url
        endpoint = f"{site.url}/oauth2/token"
        token = dict(client.fetch_token(endpoint, authorization_response=location, code_verifier=VERIFIER, state=state))
        assert token["scope"] == SCOPES
        reply = site.form("app", "/oauth2/introspect", token=token["access_token"]).json()
        assert (reply["active"], reply["sub"]) == (True, "olga")
        newer = dict(client.refresh_token(endpoint))
    assert newer["access_token"] != token["access_token"]
    assert newer["refresh_token"] != token["refresh_token"]
    assert not is_active(site, token["access_token"])
    assert is_active(site, newer["access_token"])


def test_the_page_names_the_client_its_address_and_its_scopes(site: Site, browser: Browser) -> None:
    page = browser.open(address(site, scope="tasks:read", prompt="none", approval_prompt="auto"))
    for text in ("app", "olga", "https://app.example/callback?tab=1", "<code>tasks:read</code>"):
        assert text in page.text
    assert "<code>tasks:write</code>" not in page.text
    assert "form-action 'self' https://app.example;" in page.headers["Content-Security-Policy"]
    assert page.headers["X-Frame-Options"] == "DENY"


def test_the_page_names_a_scope_that_agents_name(site: Site, browser: Browser) -> None:
    more = ("--scopes", "tasks:read billing:pay", "--grant", "authorization-code", "--redirect", REDIRECT)
    site.add("payer", site.command("add", "payer", "--principal", "olga", *more))
    page = browser.open(address(site, "payer", scope="tasks:read billing:pay"))
    assert "<code>billing:pay</code>: What the agents that name this scope allow." in page.text
    tokens = exchange(site, code(site, browser, "payer", scope="billing:pay"), "payer")
    assert tokens.json()["scope"] == "billing:pay"


@pytest.mark.parametrize(
    ("resources", "sentence"),
    [
        ([], "for the whole server, with all its agents.</p>"),
        (
            ["/agents/echo/jsonrpc"],
            "for the agent <strong>echo</strong> alone. It asks for <code>{url}/agents/echo/jsonrpc",
        ),
        (["/agents/story", "/agents/echo"], "for the agents <strong>echo, story</strong> alone."),
        (["/agents/echo", ""], "for the whole server, with all its agents. It asks for <code>{url}/agents/echo</code>"),
    ],
    ids=str,
)
def test_the_page_says_for_which_agents_the_tokens_are(
    site: Site, browser: Browser, resources: list[str], sentence: str
) -> None:
    url = httpx.URL(address(site)).copy_merge_params({"resource": [site.url + path for path in resources]})
    assert "Its tokens are " + sentence.format(url=site.url) in browser.open(str(url)).text


def test_a_refused_client_returns_with_the_error(site: Site, browser: Browser) -> None:
    query = query_of(browser.approve(address(site), allow=False))
    assert query == {"tab": "1", "error": "access_denied", "state": "s", "iss": site.url}


def test_an_operator_without_the_permission_approves_nothing(site: Site, fresh_browser: Browser) -> None:
    assert fresh_browser.open(address(site), "vera").status_code == 403


def test_an_operator_of_another_tenant_approves_nothing(site: Site, fresh_browser: Browser) -> None:
    distant = site.programs["distant"].id
    assert fresh_browser.open(address(site, "distant"), "lisa").status_code == 403
    assert fresh_browser.approve(address(site), "lisa", client_id=distant).status_code == 403
    assert "code" in query_of(fresh_browser.approve(address(site), "lisa"))


@pytest.mark.parametrize(
    ("name", "redirect"),
    [
        ("app", "https://app.example/callback"),
        ("app", "https://app.example/callback?tab=1&x=2"),
        ("app", "https://APP.example/callback?tab=1"),
        ("app", "https://app.example:443/callback?tab=1"),
        ("app", "https://evil.example/callback?tab=1"),
        ("app", "https://app.example/callback/../callback?tab=1"),
        ("native", "http://127.0.0.1:4711/other"),
        ("native", "http://localhost:4711/callback"),
        ("native", "http://127.0.0.1:4711/callback#x"),
    ],
)
def test_a_browser_is_sent_to_no_other_address(site: Site, browser: Browser, name: str, redirect: str) -> None:
    answer = browser.open(address(site, name, redirect))
    assert answer.status_code == 400
    assert "does not allow" in answer.text


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": ""}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge_method": ""}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unauthorized_client"),
        ({"response_type": "id_token"}, "unsupported_response_type"),
        ({"scope": "tasks:cancel"}, "invalid_scope"),
        ({"resource": "https://elsewhere.example"}, "invalid_target"),
    ],
    ids=str,
)
def test_a_request_against_the_rules_returns_with_an_error(
    site: Site, browser: Browser, changes: dict[str, str], error: str
) -> None:
    url = httpx.URL(address(site))
    answer = browser.approve(str(url.copy_merge_params(changes)))
    query = query_of(answer)
    assert (query["error"], query["state"], query["iss"]) == (error, "s", site.url)
    assert "code" not in query


@pytest.mark.parametrize(
    "changes",
    [
        {"code_challenge": "short"},
        {"code_challenge_method": "plain"},
        {"scope": "tasks:cancel"},
        {"resource": "https://elsewhere.example"},
        {"response_type": "token"},
        {"redirect_uri": "https://evil.example/"},
    ],
    ids=str,
)
def test_fields_of_the_page_cannot_change_what_is_allowed(
    site: Site, browser: Browser, changes: dict[str, str]
) -> None:
    answer = browser.approve(address(site), **changes)
    assert "evil" not in answer.headers.get("Location", "")
    assert answer.status_code == 400 or "error" in query_of(answer)


NOWHERE = {"redirect_uri": "https://evil.example/"}
LOST: list[dict[str, str]] = [
    {"client_id": "unknown"},
    {"client_id": ""},
    {"client_id": "x" * 600},
    {"client_id": "a\0b"},
    {"client_id": "\N{SNOWMAN}"},
    {"client_id": "unknown"} | NOWHERE,
    {"redirect_uri": "javascript:alert(1)"},
    {"redirect_uri": "//evil.example/"},
    {"redirect_uri": "https://app.example@evil.example/callback?tab=1"},
    {"redirect_uri": "https://app.example/callback?tab=1\r\nLocation: https://evil.example/"},
    NOWHERE | {"scope": "tasks:cancel", "code_challenge": ""},
    NOWHERE | {"response_type": "token"},
]
"""Requests that name no client, or no address of it, so that the browser may be sent nowhere."""


@pytest.mark.parametrize("changes", LOST, ids=ascii)
def test_a_request_that_names_no_client_or_no_address_of_it_stays_here(
    site: Site, browser: Browser, changes: dict[str, str]
) -> None:
    url = httpx.URL(address(site)).copy_merge_params(changes)
    page = browser.open(str(httpx.URL(address(site))))
    fields = hidden_fields(page.text) | changes | {"allow": "Approve"}
    sent = browser.client.post(url, data=fields, headers={"Referer": str(page.request.url)})
    for answer in (browser.open(str(url)), sent):
        assert 400 <= answer.status_code < 500, answer.text
        assert "Location" not in answer.headers


def test_a_request_without_any_parameter_stays_here(site: Site, browser: Browser) -> None:
    assert browser.open(f"{site.url}/oauth2/authorize").status_code == 400
    twice = f"{address(site)}&client_id=unknown&redirect_uri=https%3A%2F%2Fevil.example%2F"
    answer = browser.open(twice)
    assert 400 <= answer.status_code < 500
    assert "Location" not in answer.headers


def test_a_code_without_its_verifier_or_with_another_is_worth_nothing(site: Site, browser: Browser) -> None:
    value = code(site, browser)
    fields = {"grant_type": "authorization_code", "code": value, "redirect_uri": REDIRECT}
    assert refused(site.form("app", "/oauth2/token", **fields)) == (400, "invalid_request")
    assert refused(exchange(site, value, code_verifier="x" * 43)) == (400, "invalid_grant")
    assert exchange(site, value).status_code == 200


def test_a_code_for_another_address_or_of_another_client_is_worth_nothing(site: Site, browser: Browser) -> None:
    value = code(site, browser)
    assert refused(exchange(site, value, redirect_uri="https://app.example/callback")) == (400, "invalid_request")
    assert refused(exchange(site, value, "rival")) == (400, "invalid_grant")
    assert exchange(site, value).status_code == 200


def test_a_code_that_is_used_twice_ends_all_its_tokens(site: Site, browser: Browser) -> None:
    value = code(site, browser)
    token = exchange(site, value).json()
    newer = refresh(site, token["refresh_token"]).json()
    assert refused(exchange(site, value, "rival")) == (400, "invalid_grant")
    assert is_active(site, newer["access_token"])
    assert refused(exchange(site, value)) == (400, "invalid_grant")
    assert not is_active(site, newer["access_token"])
    assert refused(refresh(site, newer["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_token_that_is_used_twice_ends_its_family(site: Site, browser: Browser) -> None:
    token = exchange(site, code(site, browser)).json()
    newer = refresh(site, token["refresh_token"]).json()
    newest = refresh(site, newer["refresh_token"]).json()
    assert is_active(site, newest["access_token"])
    assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")
    assert not is_active(site, newest["access_token"])
    assert refused(refresh(site, newest["refresh_token"])) == (400, "invalid_grant")


def test_a_refresh_token_is_its_clients_own_and_gives_no_more_scopes(site: Site, browser: Browser) -> None:
    token = exchange(site, code(site, browser, scope="tasks:read")).json()
    assert refused(refresh(site, token["refresh_token"], "rival")) == (400, "invalid_grant")
    assert refused(refresh(site, token["refresh_token"], scope=SCOPES)) == (400, "invalid_scope")
    assert refresh(site, token["refresh_token"]).json()["scope"] == "tasks:read"


def test_revoking_either_token_ends_both(site: Site, browser: Browser) -> None:
    for kind in ("access_token", "refresh_token"):
        token = exchange(site, code(site, browser)).json()
        assert site.form("app", "/oauth2/revoke", token=token[kind]).status_code == 200
        assert not is_active(site, token["access_token"])
        assert refused(refresh(site, token["refresh_token"])) == (400, "invalid_grant")


def test_revoking_a_used_refresh_token_ends_its_successors(site: Site, browser: Browser) -> None:
    first = exchange(site, code(site, browser)).json()
    second = refresh(site, first["refresh_token"]).json()
    assert site.form("app", "/oauth2/revoke", token=first["refresh_token"]).status_code == 200
    assert not is_active(site, second["access_token"])
    assert refused(refresh(site, second["refresh_token"])) == (400, "invalid_grant")


def test_valid_codes_and_tokens_of_a_public_client_spend_from_the_limit_of_its_principal(
    site: Site, browser: Browser
) -> None:
    values = [code(site, browser, "hasty") for _ in range(2)]
    token = exchange(site, values[0], "hasty").json()
    while (answer := refresh(site, token["refresh_token"], "hasty")).status_code == 200:  # A sweep reads the limits.
        token = answer.json()
    for limited in (answer, exchange(site, values[1], "hasty")):
        assert refused(limited) == (429, "temporarily_unavailable")
        assert int(limited.headers["Retry-After"]) > 0
    for _ in range(30):
        assert refused(refresh(site, "tdr_unknown", "hasty")) == (400, "invalid_grant")
        assert site.form("hasty", "/oauth2/revoke", token="tda_unknown").status_code == 200
    assert site.form("hasty", "/oauth2/revoke", token=token["access_token"]).status_code == 200, "it costs one unit"
    assert not is_active(site, token["access_token"])


def test_a_native_program_returns_to_any_port_of_its_machine(site: Site, browser: Browser) -> None:
    redirect = LOOPBACK.replace("127.0.0.1", "127.0.0.1:4711")
    value = query_of(browser.approve(address(site, "native", redirect)))["code"]
    token = exchange(site, value, "native", redirect_uri=redirect)
    assert token.status_code == 200
    newer = refresh(site, token.json()["refresh_token"], "native")
    assert newer.status_code == 200
    assert site.form("native", "/oauth2/revoke", token=newer.json()["access_token"]).status_code == 200
    assert not is_active(site, newer.json()["access_token"])


def test_the_database_has_no_usable_secret_code_or_token(site: Site, browser: Browser) -> None:
    unused = code(site, browser)
    token = exchange(site, code(site, browser)).json()
    texts = [site.programs["app"].secret, unused, token["access_token"], token["refresh_token"]]
    dump = everything(site)
    assert hashlib.sha256(token["access_token"].encode()).hexdigest() in dump
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")
    assert challenge in dump
    assert [text for text in texts if text in dump] == []


def everything(site: Site) -> str:
    """Return the texts of all rows of the server's database."""
    if site.server.database.startswith("postgres"):
        query = "select table_name from information_schema.tables where table_schema = 'public'"
    else:
        query = "select name from sqlite_master where type = 'table'"
    tables: list[Any] = [name for (name,) in site.server.rows(query)]
    assert len(tables) > 30
    return "\n".join(str(site.server.rows(f"select * from {table}")) for table in tables)  # noqa: S608


def test_a_refresh_token_that_is_used_many_times_at_once_gives_at_most_one_answer(site: Site, browser: Browser) -> None:
    token = exchange(site, code(site, browser)).json()["refresh_token"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: refresh(site, token), range(8)))
    winners = [answer.json() for answer in answers if answer.status_code == 200]
    assert len(winners) <= 1
    assert {answer.status_code for answer in answers} <= {200, 400}, site.server.log.read_text("utf-8")[-5_000:]
    assert {answer.json()["error"] for answer in answers if answer.status_code != 200} == {"invalid_grant"}
    for winner in winners:
        assert winner["access_token"].startswith("tda_")
        assert not is_active(site, winner["access_token"])


VANISHING = {
    True: """
        create function forget() returns trigger language plpgsql as
        $$ begin delete from oauth2_provider_accesstoken where id = new.id; return null; end $$;
        create trigger vanishing after insert on oauth2_provider_accesstoken for each row execute function forget()
    """,
    False: """
        create trigger vanishing after insert on oauth2_provider_accesstoken
        begin delete from oauth2_provider_accesstoken where id = new.id; end
    """,
}
"""Statements after which each new access token is deleted at once, by whether the database is PostgreSQL."""


def test_a_token_that_another_call_revokes_before_the_answer_is_answered_all_the_same(site: Site) -> None:
    on_postgres = "://" in site.server.database
    site.server.execute(VANISHING[on_postgres])
    try:
        answer = site.form("robot", "/oauth2/token", grant_type="client_credentials")
    finally:
        site.server.execute(f"drop trigger vanishing{' on oauth2_provider_accesstoken' if on_postgres else ''}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert not is_active(site, answer.json()["access_token"])
