"""Tokens of issuers: which account they stand for, what they may, and how they follow the keys of their issuer."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import jwt
import pytest
from asgiref.sync import async_to_sync
from cryptography.hazmat.primitives.asymmetric import rsa

from a2a.errors import ExpiredKey, InvalidKey, Unavailable
from tasks_app.callers import issuer_keys
from tasks_app.callers.issuer_keys import source_of
from tasks_app.callers.issuers import issuers
from tasks_app.callers.schemes import Evidence
from tasks_app.models import AuditEntry, Principal, ServiceAccount
from tasks_app.transports import keys
from tests.conftest import Hand
from tests.support.issuer import AUDIENCE, LocalIssuer
from tests.transports.token_calls import FOREIGN, got, jwk_of, now, posted, recognised, shaken

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("fresh_keys")]


# ------------------------------------------------------------------- good tokens


@pytest.mark.parametrize("kind", ["JWT", "at+jwt", "application/at+jwt", ...])
@pytest.mark.requirement("ADR-11")
def test_a_good_token_is_its_account_at_every_door(kind: Any, issuer: LocalIssuer, account: ServiceAccount) -> None:
    token = issuer.token() if kind is ... else issuer.token(header={"typ": kind}, aud=["other", AUDIENCE])
    assert posted(f"Bearer {token}").status_code == 200
    assert got(f"Bearer {token}").status_code == 200
    assert shaken(f"Bearer {token}") is None
    caller = recognised(token)
    assert (caller.name, caller.tenant, caller.credential) == ("robots", "home", f"oidc:{account.pk}")
    assert caller.scopes == {"tasks:read", "tasks:write"}
    assert caller.expires_at == jwt.decode(token, options={"verify_signature": False})["exp"] + 30


@pytest.mark.parametrize(
    ("most", "scope", "expected"),
    [
        ("*", "tasks:read", {"tasks:read"}),
        ("*", "* tasks:read openid", {"tasks:read", "openid"}),
        ("tasks:read", "tasks:read tasks:cancel", {"tasks:read"}),
        ("tasks:read", "acp:tasks:read", {"acp:tasks:read"}),
        ("acp:tasks:read", "tasks:read", {"acp:tasks:read"}),
        ("tasks:read", ["tasks:read", "tasks:write", 7], {"tasks:read"}),
        ("tasks:read", ..., set()),
    ],
)
def test_a_token_has_no_more_scopes_than_its_account(
    most: str, scope: Any, expected: set[str], issuer: LocalIssuer, account: ServiceAccount
) -> None:
    ServiceAccount.objects.update(scopes=most)
    assert recognised(issuer.token(scope=scope)).scopes == expected


def test_the_account_alone_decides_where_tokens_have_no_scopes(
    issuer: LocalIssuer, account: ServiceAccount, settings: Any
) -> None:
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE, "scopes_claim": ""}}
    ServiceAccount.objects.update(scopes="tasks:read")
    assert recognised(issuer.token(scope="tasks:cancel")).scopes == {"tasks:read"}


def test_only_typed_tokens_where_the_issuer_types_them(
    issuer: LocalIssuer, account: ServiceAccount, settings: Any
) -> None:
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE, "typed": True}}
    assert recognised(issuer.token(header={"typ": "at+jwt"})).name == "robots"
    with pytest.raises(InvalidKey):
        recognised(issuer.token())


def test_an_account_is_created_only_where_the_issuer_may(issuer: LocalIssuer, settings: Any) -> None:
    with pytest.raises(InvalidKey):
        recognised(issuer.token(sub="owner"))
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE, "create": True, "scopes": "tasks:read"}}
    first, second = recognised(issuer.token(sub="owner")), recognised(issuer.token(sub="owner", jti="2"))
    assert first.owner_id == second.owner_id
    assert first.scopes == {"tasks:read"}
    assert first.name.startswith("owner@")
    assert Principal.objects.count() == ServiceAccount.objects.count() == 1
    (entry,) = AuditEntry.objects.all()
    assert (entry.caller_id, entry.caller, entry.tenant) == (first.owner_id, first.name, "default")
    assert (entry.credential, entry.method, entry.outcome) == (first.credential, "accounts/create", "result")


def test_without_the_audit_a_created_account_has_no_entry(issuer: LocalIssuer, settings: Any) -> None:
    settings.A2A_AUDIT = False
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE, "create": True}}
    assert recognised(issuer.token(sub="owner"))
    assert not AuditEntry.objects.exists()


def test_a_revocation_ends_tokens_that_were_issued_before(issuer: LocalIssuer, account: ServiceAccount) -> None:
    old, new = issuer.token(iat=now(-20)), issuer.token()
    assert recognised(old)
    ServiceAccount.objects.update(disabled_at=None, not_before=datetime.now(UTC) - timedelta(seconds=10))
    keys._cache.clear()
    with pytest.raises(InvalidKey):
        recognised(old)
    assert recognised(new)
    ServiceAccount.objects.update(disabled_at=datetime.now(UTC), not_before=None)
    keys._cache.clear()
    for token in (old, new):
        with pytest.raises(InvalidKey):
            recognised(token)


@pytest.mark.parametrize("end", ["exp", "longest_age"])
def test_a_token_is_not_trusted_beyond_its_end(
    end: str, issuer: LocalIssuer, account: ServiceAccount, hand: Hand, settings: Any
) -> None:
    settings.A2A_ISSUERS = {issuer.url: {"audience": AUDIENCE, "longest_age": 60 if end == "longest_age" else 3600}}
    begin = int(hand().timestamp())
    token = issuer.token(iat=begin, exp=begin + (60 if end == "exp" else 3600))
    assert recognised(token).expires_at == begin + 90, "streams and links end then"
    hand.on(seconds=91)
    keys._cache.clear()
    for _ in "known", "new":
        with pytest.raises(ExpiredKey):
            recognised(token)


def test_a_token_that_another_signed_is_not_said_to_have_expired(
    issuer: LocalIssuer, account: ServiceAccount, hand: Hand
) -> None:
    begin = int(hand().timestamp())
    head, claims, signature = issuer.token(iat=begin - 90, exp=begin - 60).split(".")
    for end, kind in ((signature, ExpiredKey), (signature[::-1], InvalidKey)):
        with pytest.raises(InvalidKey) as refusal:
            recognised(f"{head}.{claims}.{end}")
        assert refusal.type is kind


# ------------------------------------------------------------- keys of the issuer


def test_keys_rotate_while_calls_run(issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any) -> None:
    monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
    former = issuer.token()
    assert posted(f"Bearer {former}").status_code == 200
    for _ in range(3):
        issuer.rotate()
        assert posted(f"Bearer {issuer.token()}").status_code == 200
        assert posted(f"Bearer {former}").status_code == 200
    assert issuer.fetches == 4
    issuer.rotate(forget=True)
    assert posted(f"Bearer {issuer.token()}").status_code == 200
    keys._cache.clear()
    assert posted(f"Bearer {former}").status_code == 401, "the key is not in the set any more"


def test_a_rotation_beside_parallel_calls_fails_none_and_is_one_fetch(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
    source = source_of(issuers()[issuer.url])
    former = issuer.newest
    assert recognised(issuer.token())
    newer = issuer.rotate()

    async def find_all() -> list[Any]:
        return await asyncio.gather(
            *(source.find(kid, "ES256" if kid == newer else "RS256") for _ in range(8) for kid in (former, newer)),
            return_exceptions=True,
        )

    assert {result.key_id for result in async_to_sync(find_all)()} == {former, newer}
    assert issuer.fetches == 2, "one for the first key, and one for the rotation"
    assert recognised(issuer.token())
    assert issuer.fetches == 2


def test_a_key_that_the_issuer_removed_is_forgotten_in_time(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    token = issuer.token()
    issuer_of = issuers()[issuer.url]

    async def in_one_loop() -> None:
        assert await keys.authenticate(Evidence("oidc", token), str)
        issuer.rotate(forget=True)
        monkeypatch.setattr(issuer_keys, "FRESH_SECONDS", 0.0)
        monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
        keys._cache.clear()
        assert await keys.authenticate(Evidence("oidc", token), str), "the old set answers at once"
        flight = source_of(issuer_of).flight
        assert flight is not None
        await flight
        keys._cache.clear()
        with pytest.raises(InvalidKey):
            await keys.authenticate(Evidence("oidc", token), str)

    async_to_sync(in_one_loop)()


def test_a_key_that_was_asked_for_too_early_is_found_half_a_minute_later(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    moments = [1_000.0]
    monkeypatch.setattr(issuer_keys, "time", SimpleNamespace(monotonic=lambda: moments[0]))
    assert recognised(issuer.token())
    moments[0] += 20
    # Anybody may send such a token before the issuer publishes its next key.
    assert posted(f"Bearer {issuer.token(header={'kid': 'next'})}").status_code == 401
    issuer.keys["next"] = issuer.keys[issuer.newest]
    issuer.newest = "next"
    moments[0] += 20
    assert posted(f"Bearer {issuer.token()}").status_code == 401
    assert issuer.fetches == 2
    moments[0] += 11
    assert posted(f"Bearer {issuer.token()}").status_code == 200
    assert issuer.fetches == 3


def test_a_thousand_unknown_keys_lead_to_one_fetch(issuer: LocalIssuer, account: ServiceAccount) -> None:
    source = source_of(issuers()[issuer.url])

    async def flood() -> list[Any]:
        return await asyncio.gather(*(source.find(f"k{n}", "RS256") for n in range(1_000)), return_exceptions=True)

    assert all(isinstance(result, InvalidKey) for result in async_to_sync(flood)())
    assert issuer.fetches == 1
    assert len(source.absent) <= issuer_keys.MOST_ABSENT
    assert recognised(issuer.token())
    assert issuer.fetches == 1


def test_unknown_keys_one_after_another_lead_to_one_fetch_in_ten_seconds(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    moments = [1_000.0]
    monkeypatch.setattr(issuer_keys, "time", SimpleNamespace(monotonic=lambda: moments[0]))
    for fetches in (1, 2):
        for number in range(20):
            with pytest.raises(InvalidKey):
                recognised(issuer.token(header={"kid": f"{fetches}-{number}"}))
        assert issuer.fetches == fetches
        moments[0] += 10


def test_a_name_that_a_fetch_did_not_find_is_not_fetched_again(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
    for _ in range(5):
        with pytest.raises(InvalidKey):
            recognised(issuer.token(header={"kid": "gone"}))
    assert issuer.fetches == 1


def test_the_last_keys_serve_while_the_issuer_is_away(
    issuer: LocalIssuer, account: ServiceAccount, monkeypatch: Any
) -> None:
    monkeypatch.setattr(issuer_keys, "PAUSE_SECONDS", 0.0)
    assert recognised(issuer.token())
    issuer.is_down = True
    monkeypatch.setattr(issuer_keys, "FRESH_SECONDS", 0.0)
    assert recognised(issuer.token(jti="2"))
    answer = posted(f"Bearer {issuer.token(header={'kid': 'new'})}")
    assert answer.status_code == 503
    assert "WWW-Authenticate" not in answer
    monkeypatch.setattr(issuer_keys, "LAST_SECONDS", 0.0)
    with pytest.raises(Unavailable):
        recognised(issuer.token(jti="3"))


def test_keys_that_sign_nothing_here_are_left_out(issuer: LocalIssuer) -> None:
    rules = issuers()[issuer.url]
    good = issuer.key_set()["keys"][0]
    short = jwk_of(rsa.generate_private_key(65537, 1024))  # noqa: S505  # that is the point
    private = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(FOREIGN)) | {"kid": "private"}
    others = [
        {"kty": "oct", "k": "c2VjcmV0", "kid": "shared", "alg": "HS256"},
        good | {"kid": "encrypts", "use": "enc"},
        good | {"kid": "other-algorithm", "alg": "RS512"},
        good | {"kid": ""},
        short | {"kid": "short"},
        private,
        {"kty": "RSA", "kid": "broken", "n": "!", "e": "AQAB"},
        "no object",
    ]
    found = issuer_keys.read_keys({"keys": [*others, good]}, rules)
    assert set(found) == {("rsa-1", "RS256"), ("rsa-1", "PS256")}
    for wrong in ([], {}, {"keys": 7}, {"keys": others}):
        with pytest.raises(issuer_keys.FetchFailed):
            issuer_keys.read_keys(wrong, rules)
