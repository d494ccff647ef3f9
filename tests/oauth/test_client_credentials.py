"""Client credentials, introspection and revocation, with authlib against a real server."""

from base64 import b64encode
from typing import Any

import pytest

from tests.conftest import until
from tests.oauth.conftest import SCOPES, Site, get, post

pytestmark = pytest.mark.storage


@pytest.mark.requirement("ACP-13")
def test_a_client_gets_an_opaque_token_by_its_secret(site: Site) -> None:
    token = site.token()
    assert token["access_token"].startswith("tda_")
    assert token["token_type"] == "Bearer"
    assert token["expires_in"] == 600
    assert token["scope"] == SCOPES
    assert "refresh_token" not in token


def test_a_client_gets_no_more_scopes_than_it_has(site: Site) -> None:
    narrow = site.form("robot", "/oauth2/token", grant_type="client_credentials", scope="tasks:read")
    assert narrow.json()["scope"] == "tasks:read"
    for scope in ("tasks:read tasks:cancel", "*", "nothing"):
        answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", scope=scope)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_scope")


@pytest.mark.parametrize(
    ("grant", "error"),
    [
        ("password", "unsupported_grant_type"),
        ("urn:ietf:params:oauth:grant-type:device_code", "unsupported_grant_type"),
        ("urn:ietf:params:oauth:grant-type:jwt-bearer", "unsupported_grant_type"),
        ("", "invalid_request"),
        ("authorization_code", "unauthorized_client"),
    ],
)
def test_a_grant_that_a_client_does_not_have_is_refused(site: Site, grant: str, error: str) -> None:
    fields = {"username": "ada", "password": "x", "device_code": "x", "code": "x"}
    answer = site.form("robot", "/oauth2/token", grant_type=grant, **fields)
    assert (answer.status_code, answer.json()["error"]) == (400, error)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"grant_type": "password"}, "authorization_code, client_credentials or refresh_token"),
        ({}, "authorization_code, client_credentials or refresh_token"),
        ({"grant_type": "authorization_code", "code": "x"}, "does not have this grant"),
        ({"grant_type": "client_credentials", "scope": "tasks:cancel"}, "has a scope that the client"),
    ],
    ids=["grant", "no grant", "another client's grant", "scope"],
)
def test_an_error_about_a_token_is_explained(site: Site, fields: dict[str, str], words: str) -> None:
    answer = site.form("robot", "/oauth2/token", **fields)
    assert answer.status_code == 400
    assert words in answer.json()["error_description"]


@pytest.mark.parametrize("path", ["token", "revoke", "introspect"])
def test_a_body_that_is_no_form_is_refused_with_the_type_that_it_needs(site: Site, path: str) -> None:
    robot = site.programs["robot"]
    fields = {"grant_type": "client_credentials", "token": "x"}
    answer = post(f"{site.url}/oauth2/{path}", json=fields, auth=(robot.id, robot.secret))
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert "application/x-www-form-urlencoded" in answer.json()["error_description"]


def test_a_client_of_codes_gets_no_token_by_its_secret_alone(site: Site) -> None:
    answer = site.form("app", "/oauth2/token", grant_type="client_credentials")
    assert (answer.status_code, answer.json()["error"]) == (400, "unauthorized_client")


@pytest.mark.parametrize("secret", ["", "x", "tds_wrong", "x" * 100_000, "\0"])
def test_a_wrong_secret_is_refused_like_an_unknown_client(site: Site, secret: str) -> None:
    for name in (site.programs["robot"].id, "unknown", "\0", ""):
        form = {"grant_type": "client_credentials", "client_id": name, "client_secret": secret}
        answer = post(f"{site.url}/oauth2/token", data=form)
        assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="taskdesk"'


def test_a_public_client_gets_nothing_without_a_secret_by_client_credentials(site: Site) -> None:
    for fields in ({}, {"client_secret": ""}):
        answer = site.form("native", "/oauth2/token", grant_type="client_credentials", **fields)
        assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})


@pytest.mark.parametrize("scheme", ["basic", "BASIC", "Basic "])
def test_the_name_of_basic_authentication_has_no_case(site: Site, scheme: str) -> None:
    robot = site.programs["robot"]
    headers = {"Authorization": f"{scheme} {b64encode(f'{robot.id}:{robot.secret}'.encode()).decode()}"}
    answer = post(f"{site.url}/oauth2/token", data={"grant_type": "client_credentials"}, headers=headers)
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", ["token", "revoke", "introspect"])
def test_a_request_of_two_clients_is_refused(site: Site, path: str) -> None:
    fields = {"grant_type": "client_credentials", "token": "x"}
    assert site.form("robot", f"/oauth2/{path}", **fields, client_id=site.programs["robot"].id).status_code == 200
    answer = site.form("robot", f"/oauth2/{path}", **fields, client_id=site.programs["reader"].id)
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})


def test_two_ways_to_send_a_secret_at_once_are_refused(site: Site) -> None:
    secret = site.programs["robot"].secret
    answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", client_secret=secret)
    assert (answer.status_code, answer.json()) == (401, {"error": "invalid_client"})


@pytest.mark.parametrize("resource", ["https://elsewhere.example", "{url}.example", "{url}/#x", "{url}?x=1", "\0", "x"])
def test_a_token_is_only_for_resources_of_this_server(site: Site, resource: str) -> None:
    resource = resource.format(url=site.url)
    answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", resource=resource)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")


@pytest.mark.parametrize(
    ("path", "fields", "error"),
    [
        ("/oauth2/token", {"resource": "x"}, "invalid_target"),
        ("/oauth2/token", {"scope": "nothing"}, "invalid_scope"),
        ("/oauth2/token?grant_type=client_credentials", {}, "invalid_request"),
    ],
)
def test_an_error_about_a_token_is_json_that_no_cache_keeps(
    site: Site, path: str, fields: dict[str, str], error: str
) -> None:
    answer = site.form("robot", path, grant_type="client_credentials", **fields)
    assert (answer.status_code, answer.json()["error"]) == (400, error)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize(
    "path", ["/agents/sto.ry", "/agents/STORY", "/agents//story", "/Agents/story", "/agents/story/#x"]
)
def test_a_wrong_address_of_an_agent_gets_no_token_for_all(site: Site, path: str) -> None:
    answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", resource=site.url + path)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")


@pytest.mark.parametrize(
    "path", ["", "/", "/agents", "/agents/", "/jsonrpc", "/agents/story/", "/agents/story/jsonrpc"]
)
def test_an_address_of_this_server_is_a_resource(site: Site, path: str) -> None:
    answer = site.form("robot", "/oauth2/token", grant_type="client_credentials", resource=site.url + path)
    assert answer.status_code == 200, answer.content


def test_tokens_and_introspections_spend_from_the_limit_of_the_principal(site: Site) -> None:
    def ask(path: str, **fields: str) -> Any:
        return site.form("busy", path, **fields)

    # A sweep reads the limits.
    refused = until(lambda: (answer := ask("/oauth2/introspect", token="x")).status_code == 429 and answer, "a refusal")
    assert refused.json()["error"] == "temporarily_unavailable"
    assert "The limit of calls" in refused.json()["error_description"]
    assert int(refused.headers["Retry-After"]) > 0
    grant = ask("/oauth2/token", grant_type="client_credentials")
    assert grant.status_code == 429
    assert int(grant.headers["Retry-After"]) > 9 * 60, "a grant costs ten units"
    assert site.form("robot", "/oauth2/token", grant_type="client_credentials").status_code == 200


@pytest.mark.parametrize("path", ["/oauth2/token", "/oauth2/revoke", "/oauth2/introspect"])
def test_no_secret_of_a_client_is_taken_from_an_address(site: Site, path: str) -> None:
    program, fields = site.programs["robot"], {"grant_type": "client_credentials", "token": "tda_unknown"}
    credentials = {"client_id": program.id, "client_secret": program.secret}
    assert post(f"{site.url}{path}", data=fields | credentials).status_code == 200
    answer = post(f"{site.url}{path}", params=credentials, data=fields)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


@pytest.mark.requirement("ACP-19")
def test_a_token_is_described_to_clients_of_its_tenant_alone(site: Site) -> None:
    token = site.token()["access_token"]
    with site.client("reader") as client:
        reply = client.introspect_token(f"{site.url}/oauth2/introspect", token=token).json()
    assert reply["active"]
    assert reply["sub"] == "robot"
    assert reply["scope"] == SCOPES
    assert reply["client_id"] == site.programs["robot"].id
    assert reply["iss"] == site.url
    assert reply["aud"] == [site.url]
    assert reply["exp"] - reply["iat"] == 600
    assert site.form("foreigner", "/oauth2/introspect", token=token).json() == {"active": False}
    assert site.form("reader", "/oauth2/introspect", token="tda_unknown").json() == {"active": False}
    assert site.form("native", "/oauth2/introspect", token=token).status_code == 401
    assert post(f"{site.url}/oauth2/introspect", data={"token": token}).status_code == 401
    assert site.form("reader", "/oauth2/introspect").status_code == 400
    assert get(f"{site.url}/oauth2/introspect", params={"token": token}).status_code == 405


def test_a_client_revokes_its_own_token_and_no_other(site: Site) -> None:
    token = site.token()["access_token"]
    assert site.form("reader", "/oauth2/revoke", token=token).status_code == 200
    assert site.form("robot", "/oauth2/introspect", token=token).json()["active"]
    with site.client("robot") as client:
        assert client.revoke_token(f"{site.url}/oauth2/revoke", token=token).status_code == 200
    assert site.form("robot", "/oauth2/introspect", token=token).json() == {"active": False}
    assert post(f"{site.url}/oauth2/revoke", data={"token": token}).status_code == 401
