"""Schemes of authentication: what cards show, what a 401 demands, and what a request is recognised by, agree."""

import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.test import Client

from tasks_app.callers import schemes
from tasks_app.callers.service_accounts import CERTIFICATE, register
from tasks_app.checks.cards import check_schemes
from tasks_app.descriptions import pages
from tasks_app.transports.challenges import challenge
from tests.conftest import Person, person
from tests.support.cached_cards import forget_cards
from tests.support.client_certificates import client_cert
from tests.support.issuer import AUDIENCE, SUBJECT, LocalIssuer, local_issuer
from tests.transports.calls import call

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_keys")]
SAMPLES: dict[str, Callable[[Person, LocalIssuer], dict[str, str]]] = {
    "bearer": lambda person, _: {"Authorization": f"Bearer {person.key}"},
    "key": lambda person, _: {"X-API-Key": person.key},
    "oidc": lambda _, issuer: {"Authorization": f"Bearer {issuer.token()}"},
    "mtls": lambda *_: {"Client-Cert": client_cert()},
}
"""Headers by which each scheme recognises a person."""
ELSEWHERE = {"oauth", "session"}
"""Schemes that need more than a header: tests/oauth and test_sessions.py."""
COMBINATIONS = [names for size in range(1, len(SAMPLES) + 1) for names in itertools.combinations(sorted(SAMPLES), size)]


@pytest.fixture(autouse=True)
def _afresh() -> Iterator[None]:
    def forget() -> None:
        forget_cards()
        pages._openapi.cache_clear()

    forget()
    yield
    forget()


@pytest.fixture(scope="module")
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as issuer:
        yield issuer


@pytest.fixture
def grounds(issuer: LocalIssuer, owner: Person, settings: Any) -> None:
    """Let each scheme work, and recognise the owner."""
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.1"]
    settings.A2A_OUTBOUND_LOOPBACK = True
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE}}
    for name, subject in ((issuer.url, SUBJECT), (CERTIFICATE, "dns:robot.example.com")):
        register(name, subject, owner.caller.name, owner.caller.tenant, "*", None)


def post(**headers: str) -> Any:
    body = call("ListTasks", {}, id=1)
    return Client().post("/jsonrpc", body, "application/json", headers=headers | {"A2A-Version": "1.0"})


def test_every_scheme_has_a_sample() -> None:
    assert SAMPLES.keys() | ELSEWHERE == schemes.PLACES.keys()


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
@pytest.mark.usefixtures("grounds")
def test_cards_challenges_and_doors_agree(
    names: tuple[str, ...], owner: Person, issuer: LocalIssuer, settings: Any
) -> None:
    settings.A2A_SCHEMES = names
    shown = {name for one in schemes.schemes() for name in one.cards()}
    for version, requirements in (("1.0", "securityRequirements"), ("0.3", "security")):
        card = Client().get("/.well-known/agent-card.json", headers={"A2A-Version": version}).json()
        assert card["securitySchemes"].keys() == shown
        assert {name for one in card[requirements] for name in one.get("schemes", one)} == shown
    openapi = Client().get("/openapi.json", headers=SAMPLES[names[0]](owner, issuer)).json()
    assert openapi["components"]["securitySchemes"].keys() == shown

    refused = post()
    assert refused.status_code == 401
    on = {one.challenge for one in schemes.schemes()} - {""} or {one.substitute for one in schemes.schemes()}
    assert set(re.findall(r"(?:^|, )([^ =]+) \w+=", refused["WWW-Authenticate"])) == on
    assert "error=" not in refused["WWW-Authenticate"]
    assert refused.json()["error"]["message"] == f"Authentication is required: send {schemes.credentials()}"

    for name, sample in SAMPLES.items():
        answer = post(**sample(owner, issuer))
        assert answer.status_code == (200 if name in names else 401), (name, answer.content)
        if name not in names and "Bearer" in on and name != "mtls":
            assert answer["WWW-Authenticate"].endswith('error="invalid_token"')


@pytest.mark.parametrize(("path", "resource"), [("/jsonrpc", ""), ("/agents/echo/jsonrpc", "/agents/echo")])
@pytest.mark.parametrize("names", [("oidc",), ("bearer", "oidc", "key")], ids="+".join)
@pytest.mark.usefixtures("grounds")
def test_a_caller_without_a_token_is_led_to_its_issuer(
    names: tuple[str, ...], path: str, resource: str, issuer: LocalIssuer, settings: Any
) -> None:
    settings.A2A_SCHEMES, settings.A2A_PUBLIC_URL = names, "https://agents.example"
    answer = Client().post(path, call("ListTasks", {}, id=1), "application/json")
    address = answer["WWW-Authenticate"].partition('resource_metadata="')[2].partition('"')[0]
    document = Client().get(address.removeprefix("https://agents.example")).json()
    assert document["resource"] == f"https://agents.example{resource}"
    assert document["authorization_servers"] == [issuer.url]


@pytest.mark.parametrize("path", ["/message:send", "/jsonrpc"])
def test_a_refusal_for_a_scope_has_a_challenge_that_names_it(path: str) -> None:
    key = person("reader", "home", scopes="tasks:read").key
    sample = {"message": {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": sample} if path == "/jsonrpc" else sample
    headers = {"Authorization": f"Bearer {key}", "A2A-Version": "1.0"}
    answer = Client().post(path, body, content_type="application/json", headers=headers)
    assert answer.status_code == 403
    assert answer["WWW-Authenticate"] == 'Bearer realm="taskdesk", error="insufficient_scope", scope="tasks:write"'


def test_a_scope_that_needs_an_escape_is_left_out_of_the_challenge() -> None:
    assert challenge("/", "insufficient_scope", 'a", b') == 'Bearer realm="taskdesk", error="insufficient_scope"'


def test_the_schemes_are_api_keys_by_default(owner: Person) -> None:
    assert [one.name for one in schemes.schemes()] == ["bearer", "key"]
    assert challenge("/") == 'Bearer realm="taskdesk"'


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["bearer", "key"], "an API key as Authorization: Bearer or X-API-Key"),
        (["oidc"], "an access token as Authorization: Bearer"),
        (
            ["mtls", "key", "oidc"],
            "an access token as Authorization: Bearer, or an API key as X-API-Key, or a client certificate in TLS",
        ),
        (["session"], "the session of a logged-in user"),
    ],
)
def test_a_401_says_what_the_schemes_take(names: list[str], words: str, settings: Any) -> None:
    settings.A2A_SCHEMES = names
    assert schemes.credentials() == words
    assert post().json()["error"]["message"] == f"Authentication is required: send {words}"


@pytest.mark.parametrize("names", [(), ("bearer", "magic")])
def test_a_scheme_that_is_none_stops_the_start(names: tuple[str, ...], settings: Any) -> None:
    assert check_schemes() == []
    settings.A2A_SCHEMES = names
    assert [message.id for message in check_schemes()] == ["a2a.E021"]
    with pytest.raises(ImproperlyConfigured, match=r"list one or more of .*bearer, key"):
        schemes.schemes()
