"""Certificates of clients: read from a trusted proxy alone, in three forms, and the tokens that are bound to one."""

from base64 import b64encode
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from tasks_app.callers import schemes
from tasks_app.callers.service_accounts import CERTIFICATE, register
from tasks_app.transports import keys
from tests.support.client_certificates import DNS, URI, client_cert, der, escaped_pem, thumbprint, x5t
from tests.support.issuer import AUDIENCE, SUBJECT, LocalIssuer, local_issuer
from tests.transports.calls import call

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_keys")]
SUBJECTS = [f"sha256:{thumbprint()}", f"uri:{URI}", f"dns:{DNS}", "dn:CN=robot"]
NAMES = ["thumbprint", "uri", "dns", "dn"]
FIELDS = f'Hash={thumbprint()};Subject="CN=robot";URI={URI};DNS={DNS}'
FORMS = {
    "Client-Cert": client_cert(),
    "X-SSL-Client-Cert": escaped_pem(),
    "X-Forwarded-Client-Cert": f'By=spiffe://proxy;Cert="{escaped_pem()}"',
}


@pytest.fixture(autouse=True)
def _on(settings: Any) -> None:
    settings.A2A_SCHEMES = ("bearer", "mtls")
    settings.A2A_TRUSTED_PROXIES = ["10.0.0.0/8"]


def posted(peer: str = "10.1.2.3", **headers: str) -> Any:
    headers |= {"A2A-Version": "1.0"}
    body = call("ListTasks", {}, id=1)
    return Client(REMOTE_ADDR=peer).post("/jsonrpc", body, "application/json", headers=headers)


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
@pytest.mark.parametrize("header", FORMS)
@pytest.mark.requirement("ACP-19")
def test_a_certificate_is_its_account(header: str, subject: str, settings: Any) -> None:
    settings.A2A_CLIENT_CERT_HEADER = header
    assert posted(**{header: FORMS[header]}).status_code == 401, "no account"
    register(CERTIFICATE, subject, "robots", "home", "*", None)
    assert posted(**{header: FORMS[header]}).status_code == 200


@pytest.mark.parametrize("subject", SUBJECTS, ids=NAMES)
def test_the_fields_of_a_proxy_are_enough(subject: str, settings: Any) -> None:
    settings.A2A_CLIENT_CERT_HEADER = "X-Forwarded-Client-Cert"
    register(CERTIFICATE, subject, "robots", "home", "*", None)
    assert posted(**{"X-Forwarded-Client-Cert": FIELDS}).status_code == 200
    assert posted(**{"X-Forwarded-Client-Cert": f'Hash={"0" * 64};Subject="CN=other, Inc",{FIELDS}'}).status_code == 200
    assert posted(**{"X-Forwarded-Client-Cert": f"{FIELDS},Hash={'0' * 64}"}).status_code == 401, "the last one counts"


def test_headers_that_callers_make_longer_take_bounded_memory(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.A2A_CLIENT_CERT_HEADER = "X-Forwarded-Client-Cert"
    monkeypatch.setattr(keys, "MAX_SIZE", 40_000)
    register(CERTIFICATE, SUBJECTS[0], "robots", "home", "*", None)
    for number in range(20):
        before = f"Subject={number:010000},"
        assert posted(**{"X-Forwarded-Client-Cert": before + FIELDS}).status_code == 200
    assert 1 <= len(keys._cache) <= 4


@pytest.mark.parametrize("peer", ["192.0.2.7", "127.0.0.1", "::1", ""])
def test_a_certificate_from_any_other_peer_is_ignored(peer: str) -> None:
    register(CERTIFICATE, SUBJECTS[0], "robots", "home", "*", None)
    answer = posted(peer, **{"Client-Cert": client_cert()})
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="taskdesk"')
    assert posted(**{"Client-Cert": client_cert()}).status_code == 200


FOREIGN = {
    "origin": {"Origin": "https://other.example"},
    "opaque origin": {"Origin": "null"},
    "origin that cannot be read": {"Origin": "http://[testserver"},
    "another site": {"Sec-Fetch-Site": "cross-site"},
    "another name of the site": {"Sec-Fetch-Site": "same-site", "Origin": "https://www.testserver"},
}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_certificate_counts_in_no_request_of_another_origins_page(name: str) -> None:
    register(CERTIFICATE, SUBJECTS[0], "robots", "home", "*", None)
    browser = Client(REMOTE_ADDR="10.1.2.3")
    shown = {"Client-Cert": client_cert(), "Host": "testserver"}
    own = {"Sec-Fetch-Site": "same-origin", "Origin": "http://testserver"}
    assert browser.post("/ws/ticket", headers=shown | own).status_code == 200
    assert browser.post("/ws/ticket", headers=shown | FOREIGN[name]).status_code == 401


def test_a_certificate_opens_no_socket_for_a_page_that_may_call_with_a_key(settings: Any) -> None:
    settings.A2A_CORS_ORIGINS = ["*"]
    register(CERTIFICATE, SUBJECTS[0], "robots", "home", "*", None)
    meta = {"REMOTE_ADDR": "10.1.2.3", "HTTP_CLIENT_CERT": client_cert(), "HTTP_HOST": "testserver"}
    assert schemes.evidence_in(meta)
    assert schemes.evidence_in(meta | {"HTTP_ORIGIN": "https://other.example", "HTTP_UPGRADE": "websocket"}) is None


def test_only_the_header_of_the_settings_counts() -> None:
    register(CERTIFICATE, SUBJECTS[0], "robots", "home", "*", None)
    others = {name: value for name, value in FORMS.items() if name != "Client-Cert"}
    assert posted(**others).status_code == 401


def test_a_certificate_that_has_ended_is_refused() -> None:
    register(CERTIFICATE, f"dns:{DNS}", "robots", "home", "*", None)
    assert posted(**{"Client-Cert": client_cert()}).status_code == 200
    assert posted(**{"Client-Cert": client_cert(-1.0)}).status_code == 401


def changed(before: bytes, after: bytes) -> str:
    """Return the header of a certificate with other bytes in one place."""
    assert before in der()
    return f":{b64encode(der().replace(before, after)).decode()}:"


BROKEN = {
    "no colons": client_cert().strip(":"),
    "no base64": ":!!!:",
    "no certificate": ":aGVsbG8=:",
    "cut off": client_cert()[:400] + ":",
    "a colon": ":",
    "100 kB": f":{'A' * 100_000}:",
    "two": f"{client_cert()}, {client_cert()}",
    "a version that there is not": changed(b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x05"),
    "a name of another kind": changed(b"\x82\x11" + DNS.encode(), b"\xa3\x11" + DNS.encode()),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("header", FORMS)
def test_a_broken_certificate_is_refused(header: str, name: str, settings: Any) -> None:
    settings.A2A_CLIENT_CERT_HEADER = header
    answer = posted(**{header: BROKEN[name]})
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"] == 'Bearer realm="taskdesk", error="invalid_token"'


def test_a_key_counts_before_a_certificate(owner: Any) -> None:
    evidence = schemes.evidence_in({"HTTP_AUTHORIZATION": "Bearer x", "HTTP_CLIENT_CERT": client_cert()})
    assert evidence is not None
    assert evidence.scheme == "bearer"


# --------------------------------------------------------------- tokens bound to one


@pytest.fixture
def issuer(settings: Any) -> Iterator[LocalIssuer]:
    with local_issuer() as issuer:
        settings.A2A_SCHEMES = ("oidc",)
        settings.A2A_OUTBOUND_LOOPBACK = True
        settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE}}
        register(issuer.url, SUBJECT, "robots", "home", "*", None)
        yield issuer


def test_a_bound_token_needs_its_certificate(issuer: LocalIssuer) -> None:
    token = f"Bearer {issuer.token(cnf={'x5t#S256': x5t()})}"
    assert posted(Authorization=token).status_code == 401
    assert posted(Authorization=token, **{"Client-Cert": client_cert(name="other")}).status_code == 401
    assert posted("192.0.2.7", Authorization=token, **{"Client-Cert": client_cert()}).status_code == 401
    assert posted(Authorization=token, **{"Client-Cert": client_cert()}).status_code == 200
    assert posted(Authorization=token).status_code == 401, "a cached token is checked as well"
    assert posted(Authorization=f"Bearer {issuer.token()}").status_code == 200
