"""Hostile tokens: refused alike at every door, with the same code and challenge, and without internals."""

import hashlib
import hmac
import json
import warnings
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from tasks_app.models import ServiceAccount
from tests.support.issuer import LocalIssuer
from tests.transports.token_calls import FOREIGN, INVALID, NO_TOKEN, got, jwk_of, now, posted, shaken

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("fresh_keys")]


def with_parts(issuer: LocalIssuer, header: dict[str, Any], signature: bytes = b"") -> str:
    def part(value: Any) -> str:
        raw = value if isinstance(value, bytes) else json.dumps(value).encode()
        return urlsafe_b64encode(raw).decode().rstrip("=")

    return ".".join((part(header), part(issuer.claims()), part(signature)))


def hmac_with_public_key(issuer: LocalIssuer) -> str:
    pem = issuer.keys["rsa-1"].public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = with_parts(issuer, {"alg": "HS256", "typ": "JWT", "kid": "rsa-1"}).rpartition(".")[0]
    mac = hmac.digest(pem, signed.encode(), hashlib.sha256)
    return f"{signed}.{urlsafe_b64encode(mac).decode().rstrip('=')}"


def changed(issuer: LocalIssuer) -> str:
    header, _, signature = issuer.token().split(".")
    claims = urlsafe_b64encode(json.dumps(issuer.claims(sub="admin")).encode()).decode().rstrip("=")
    return f"{header}.{claims}.{signature}"


HOSTILE: dict[str, Callable[[LocalIssuer], str]] = {
    "algorithm none": lambda i: with_parts(i, {"alg": "none", "typ": "JWT", "kid": "rsa-1"}),
    "algorithm none without a signature": lambda i: with_parts(i, {"alg": "none", "kid": "rsa-1"}).rstrip("A"),
    "no algorithm": lambda i: with_parts(i, {"typ": "JWT", "kid": "rsa-1"}, b"x" * 256),
    "HS256 with the public key": hmac_with_public_key,
    "an algorithm that the issuer does not use": lambda i: i.token(algorithm="RS512"),
    "an unknown critical extension": lambda i: i.token(header={"crit": ["exp2"], "exp2": 1}),
    "a detached payload": lambda i: with_parts(i, {"alg": "RS256", "kid": "rsa-1", "b64": False}, b"x" * 256),
    "claims that a header calls compressed": lambda i: i.token(header={"zip": "DEF"}),
    "an unknown key": lambda i: i.token(header={"kid": "other"}),
    "no name of a key": lambda i: i.token(header={"kid": ...}),
    "a number as the name of a key": lambda i: with_parts(i, {"alg": "RS256", "kid": 7}, b"x" * 256),
    "a path as the name of a key": lambda i: i.token(header={"kid": "../../etc/passwd"}),
    "the key of somebody else": lambda i: i.token(key=FOREIGN),
    "a key in the header": lambda i: i.token(key=FOREIGN, header={"jwk": jwk_of(FOREIGN)}),
    "the address of a key in the header": lambda i: i.token(key=FOREIGN, header={"jku": i.url + "/keys"}),
    "a certificate's address in the header": lambda i: i.token(key=FOREIGN, header={"x5u": i.url + "/keys"}),
    "changed claims": changed,
    "another issuer": lambda i: i.token(iss="https://evil.example.com"),
    "the issuer with a slash": lambda i: i.token(iss=i.url + "/"),
    "a list as the issuer": lambda i: with_raw_claims(i, iss=[i.url]),
    "another audience": lambda i: i.token(aud="someone-else"),
    "no audience": lambda i: i.token(aud=...),
    "no issuer": lambda i: i.token(iss=...),
    "no subject": lambda i: i.token(sub=...),
    "an empty subject": lambda i: i.token(sub=""),
    "a subject with a NUL": lambda i: i.token(sub="robot\0"),
    "an unknown subject": lambda i: i.token(sub="nobody"),
    "no end": lambda i: i.token(exp=...),
    "an end that is no number": lambda i: with_raw_claims(i, exp="9999999999"),
    "no time of issue": lambda i: i.token(iat=...),
    "expired": lambda i: i.token(iat=now(-600), exp=now(-60)),
    "issued long ago": lambda i: i.token(iat=now(-90_000), exp=now(600)),
    "not yet valid": lambda i: i.token(nbf=now(120)),
    "issued in the future": lambda i: i.token(iat=now(120)),
    "an ID token with a nonce": lambda i: i.token(nonce="n-0S6_WzA2Mj"),
    "an ID token with a hash": lambda i: i.token(at_hash="MTIzNDU2Nzg5MDEyMzQ1Ng"),
    "an ID token of Keycloak": lambda i: i.token(typ="ID"),
    "a refresh token of Keycloak": lambda i: i.token(typ="Refresh"),
    "another type of token": lambda i: i.token(header={"typ": "logout+jwt"}),
    "bound to another key": lambda i: i.token(cnf={"jkt": "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"}),
    "bound to a certificate that is absent": lambda i: i.token(cnf={"x5t#S256": "A" * 43}),
    "bound to a certificate without a hash": lambda i: i.token(cnf={"x5t#S256": ""}),
    "truncated": lambda i: i.token()[:-20],
    "without its signature": lambda i: i.token().rpartition(".")[0],
    "a space inside": lambda i: i.token().replace(".", ". ", 1),
    "two tokens": lambda i: f"{i.token()}, Bearer {i.token()}",
    "100 kB": lambda i: i.token(padding="x" * 75_000),
    "deep JSON": lambda i: "eyJ." + urlsafe_b64encode(b"[" * 5_000).decode().rstrip("=") + ".AAAA",
    "a list as the claims": lambda i: jwt.api_jws.encode(b"[]", i.keys["rsa-1"], "RS256", {"kid": "rsa-1"}),
    "claims of a length that base64url does not have": lambda i: i.token().split(".")[0] + ".AAAAA.AAAA",
    "no JSON": lambda i: "eyJhbGciOi.eyJpc3MiOi.AAAA",
}


def with_raw_claims(issuer: LocalIssuer, **claims: Any) -> str:
    """Return a token with claims that the library does not sign."""
    body = json.dumps(issuer.claims() | claims).encode()
    return jwt.api_jws.encode(body, issuer.keys["rsa-1"], "RS256", {"kid": "rsa-1"})


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.requirement("ADR-11")
def test_hostile_tokens_are_refused_alike_at_every_door(
    name: str, issuer: LocalIssuer, account: ServiceAccount
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        token = HOSTILE[name](issuer)
    rpc, rest, socket = posted(f"Bearer {token}"), got(f"Bearer {token}"), shaken(f"Bearer {token}")
    protocol = shaken("", ("a2a", "bearer." + urlsafe_b64encode(token.encode()).decode().rstrip("=")))
    for answer in (rpc, rest, socket, protocol):
        assert answer is not None, "the socket was opened"
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"] == INVALID
        text = answer.content.decode()
        assert not any(word in text for word in ("Traceback", "jwt", "Signature", issuer.url, token[:40])), text
    assert code_of(rpc) == code_of(socket) == code_of(protocol) == -38009
    wrong = posted("Bearer tdk_nobody")
    assert without_ids(rpc) == without_ids(wrong)
    assert without_ids(rest) == without_ids(got("Bearer tdk_nobody"))


def code_of(answer: Any) -> int:
    return int(json.loads(answer.content)["error"]["code"])


def without_ids(answer: Any) -> Any:
    return answer.status_code, answer["WWW-Authenticate"], answer.content


@pytest.mark.parametrize("path", ["/jsonrpc?access_token={}", "/jsonrpc?token={}", "/jsonrpc?Authorization=Bearer+{}"])
def test_a_token_in_the_query_is_not_looked_at(path: str, issuer: LocalIssuer, account: ServiceAccount) -> None:
    answer = posted("", path.format(issuer.token()))
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, NO_TOKEN)


def test_a_token_is_no_api_key(issuer: LocalIssuer, account: ServiceAccount) -> None:
    answer = posted("", **{"X-API-Key": issuer.token()})
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, INVALID)
