"""Calls in ACP that are refused for their credentials, their scopes, or for a connection without TLS."""

from datetime import timedelta
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.callers.access import new_key
from tasks_app.checks.production import check_proxies
from tasks_app.models import ApiKey
from tests.acp.calls import call, error_of, post, said
from tests.conftest import Person, person

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]
CREATE = call("tasks.create", {"initialMessage": said()}, id="req-123")


@pytest.mark.requirement("ACP-13", "ACP-15")
@pytest.mark.parametrize(
    ("key", "error"), [(None, "invalid_request"), ("wrong", "invalid_token")], ids=["absent", "wrong"]
)
def test_a_call_without_a_valid_token_is_refused_in_acp(key: str | None, error: str) -> None:
    status, headers, answer = post(CREATE, key)
    assert (status, answer["jsonrpc"], answer["id"]) == (401, "2.0", "req-123")
    assert headers["www-authenticate"].startswith("Bearer")
    assert (answer["error"]["code"], answer["error"]["message"]) == (-40007, "Authentication failed")
    data = answer["error"]["data"]
    assert (data["error"], data["requiredScopes"]) == (error, ["acp:agent:identify", "acp:tasks:write"])
    assert data["error_description"]
    assert data["suggestion"]
    assert "tokenUrl" not in data, "no OAuth server is on"


def test_other_languages_are_refused_as_before() -> None:
    wire = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
    status, _, answer = post(wire, None)
    assert (status, answer["error"]["code"], "data" in answer["error"]) == (401, -38009, False)


def test_an_unknown_method_needs_identification_too() -> None:
    status, _, answer = post(call("tasks.nope", {}), None)
    assert (status, answer["error"]["code"]) == (401, -40007)
    assert answer["error"]["data"]["requiredScopes"] == ["acp:agent:identify"]


@pytest.mark.requirement("ACP-15")
def test_an_expired_key_has_a_code_of_its_own() -> None:
    key = new_key("late", tenant="home")
    ApiKey.objects.filter(principal__name="late").update(expires_at=clock.now() - timedelta(seconds=1))
    status, _, answer = post(CREATE, key)
    assert (status, answer["error"]["code"], answer["error"]["message"]) == (401, -40009, "OAuth2 token expired")
    assert answer["error"]["data"]["error_description"] == "The access token is expired"


@pytest.mark.requirement("ACP-14", "ACP-15")
@pytest.mark.parametrize(
    ("scopes", "required"),
    [
        ("acp:agent:identify acp:tasks:read", ["acp:tasks:cancel"]),
        ("acp:tasks:cancel", ["acp:agent:identify"]),
        ("tasks:read", ["acp:tasks:cancel"]),
    ],
)
def test_a_missing_scope_is_named_beside_those_provided(scopes: str, required: list[str]) -> None:
    some = person("some", "home", scopes=scopes)
    status, _, answer = post(call("tasks.cancel", {"taskId": "t"}), some.key)
    assert (status, answer["id"]) == (403, "req-1")
    assert (answer["error"]["code"], answer["error"]["message"]) == (-40008, "Insufficient OAuth2 scope")
    data = answer["error"]["data"]
    assert data["requiredScopes"] == required
    assert set(data["providedScopes"]) == {scope if "acp" in scope else f"acp:{scope}" for scope in scopes.split()}
    assert data["suggestion"] == "Request additional scopes from authorization server"


# --------------------------------------------------------------------- TLS


@pytest.fixture
def production(settings: Any) -> Any:
    settings.DEVELOPMENT = False
    settings.A2A_TRUST_FORWARDED = "x-forwarded"
    return settings


@pytest.mark.requirement("ACP-02")
def test_a_call_over_plain_http_is_refused_in_production(owner: Person, production: Any) -> None:
    error = error_of("tasks.get", {"taskId": "t"}, owner.key)
    assert error["code"] == -32600
    assert "TLS" in error["data"]["detail"]
    assert error["data"]["suggestion"] == "Send the call to the https or wss address of this server"
    wire = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}}
    assert post(wire, owner.key)[2]["error"]["code"] == -32001, "other languages have no such rule"


@pytest.mark.requirement("ACP-02")
def test_a_proxy_says_that_the_call_came_over_tls(owner: Person, production: Any) -> None:
    wire = call("tasks.get", {"taskId": "t"})
    for scheme, code in (("https", -40001), ("http", -32600)):
        _, _, answer = post(wire, owner.key, **{"X-Forwarded-Proto": scheme})
        assert answer["error"]["code"] == code
    production.A2A_TRUST_FORWARDED = ""
    _, _, answer = post(wire, owner.key, **{"X-Forwarded-Proto": "https"})
    assert answer["error"]["code"] == -32600, "the header of any client counts for nothing"


@pytest.mark.requirement("ACP-02")
def test_another_peer_than_the_proxies_cannot_say_so(owner: Person, production: Any) -> None:
    wire, header = call("tasks.get", {"taskId": "t"}), {"X-Forwarded-Proto": "https"}
    production.SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    for proxies, code in ((["127.0.0.1"], -40001), (["10.0.0.0/8"], -32600)):
        production.A2A_TRUSTED_PROXIES = proxies
        assert post(wire, owner.key, **header)[2]["error"]["code"] == code


def test_a_header_that_counts_from_every_peer_is_warned_of(production: Any) -> None:
    (warning,) = check_proxies()
    assert warning.id == "a2a.W010"
    production.A2A_TRUSTED_PROXIES = ["10.0.0.0/8"]
    assert check_proxies() == []


@pytest.mark.requirement("ACP-02")
def test_debugging_needs_no_tls(owner: Person, production: Any) -> None:
    production.DEBUG = True
    assert error_of("tasks.get", {"taskId": "t"}, owner.key)["code"] == -40001
