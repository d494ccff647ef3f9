"""The scheme of OpenID Connect: signed tokens (JWT) of issuers that A2A_ISSUERS lists, for service accounts.

A token says which key signed it, but never where that key is: keys come from the issuer's own key set alone. All its
claims are checked, and the account that it names must be registered.
"""

import hashlib
import re
from base64 import urlsafe_b64decode
from collections.abc import Mapping
from typing import Annotated, Any

import jwt
import msgspec
import orjson
from django.core.exceptions import ImproperlyConfigured
from jwt import PyJWK
from jwt.exceptions import PyJWTError
from msgspec import UNSET, Meta, Struct, UnsetType, field

from a2a.errors import ExpiredKey, InvalidKey
from a2a.types import Json, SecurityScheme
from tasks_app import clock
from tasks_app.callers.certificates import bound_thumbprint
from tasks_app.callers.issuer_keys import source_of
from tasks_app.callers.issuers import DISCOVERY, Issuer, issuers
from tasks_app.callers.schemes import Evidence, Scheme, bearer_token
from tasks_app.callers.service_accounts import CreateAccount, FindAccount
from tasks_app.database.bridge import bridge

NAME = "oidc"
START = "eyJ"
"""The beginning of a JWT, which is a JSON object in base64url."""
LONGEST = 8_192
MAX_CACHED = 10_000
_FORM = re.compile(r"eyJ[A-Za-z0-9_-]*\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")
_TYPES = {"JWT", "AT+JWT", "APPLICATION/AT+JWT"}
"""The types of tokens that may be access tokens. A token without a type is a JWT."""
_ACCESS = {"AT+JWT", "APPLICATION/AT+JWT"}
_FORBIDDEN = {"b64", "zip"}
"""Members of a header that change what is signed. Those that say where a key is, such as `jku`, are ignored."""
_HOSTILE = (PyJWTError, ValueError, TypeError, OverflowError, RecursionError)
"""The errors that reading a malformed token raises."""


class Confirmation(Struct, forbid_unknown_fields=True):
    """The claim that binds a token to a certificate (RFC 8705, 3.1). A token bound to anything else is refused."""

    thumbprint: Annotated[str, Meta(min_length=1)] = field(name="x5t#S256")
    """The thumbprint. An empty one is refused, because it would count as no binding."""


class Claims(Struct):
    """The claims of a token, beside its issuer and audience. A token with a claim that only tokens of other kinds have,
    such as ID tokens, is refused."""

    sub: str
    exp: float
    iat: float
    nbf: float | UnsetType = UNSET
    cnf: Confirmation | UnsetType = UNSET
    typ: str = "Bearer"
    """The kind of token, as Keycloak writes it."""
    use: str = field(default="access", name="token_use")
    """The kind of token, as Cognito writes it."""
    nonce: Any = UNSET
    at_hash: Any = UNSET
    c_hash: Any = UNSET
    s_hash: Any = UNSET
    events: Any = UNSET

    @property
    def is_for_access(self) -> bool:
        """Whether this is an access token (OpenID Connect Core 1.0, 2 and 3.3.2.11 for the others)."""
        others = (self.nonce, self.at_hash, self.c_hash, self.s_hash, self.events)
        return self.typ.lower() == "bearer" and self.use == "access" and all(one is UNSET for one in others)


class Token(Struct, frozen=True, kw_only=True):
    """A token whose signature and claims were verified."""

    key: PyJWK
    subject: str
    issued_at: float
    expires_at: float
    scopes: frozenset[str] | None
    thumbprint: str
    """The certificate that it is bound to; empty if it is not bound."""


_cache: dict[bytes, Token] = {}
"""Tokens by their hash. A token is verified again once its issuer has another key of the name."""


async def prove(evidence: Evidence) -> FindAccount:
    """Return the work item that finds the account of a token. Raises InvalidKey, and Unavailable if the keys of the
    issuer are needed and it cannot be asked."""
    text = _text_of(evidence)
    issuer, kid, algorithm = _origin(text)
    key = await source_of(issuer).find(kid, algorithm)
    name, token = _cached(text, key)
    if token is None:
        token = verify(text, issuer, key)
        if issuer.create:
            await bridge.ask(CreateAccount(issuer.url, token.subject, issuer.tenant, issuer.scopes))
        if len(_cache) >= MAX_CACHED:
            _cache.clear()
        _cache[name] = token
    if token.thumbprint and token.thumbprint != evidence.certificate:
        raise InvalidKey
    if token.expires_at <= clock.now().timestamp():
        _cache.pop(name, None)
        raise ExpiredKey
    return FindAccount(issuer.url, (token.subject,), token.scopes, token.issued_at, token.expires_at)


def refutes(evidence: Evidence) -> bool:
    """Return whether a token is not valid, by the keys that this process has. One that has only expired is not refuted,
    because its refusal says so."""
    try:
        text = _text_of(evidence)
        issuer, kid, algorithm = _origin(text)
        key = source_of(issuer).find_known(kid, algorithm)
        if key is not None and _cached(text, key)[1] is None:
            verify(text, issuer, key)
    except InvalidKey as error:
        return not isinstance(error, ExpiredKey)
    return False


def _text_of(evidence: Evidence) -> str:
    """Return the token. Raises InvalidKey for a text that does not have the form of a token."""
    text = evidence.secret
    if not isinstance(text, str) or len(text) > LONGEST or not _FORM.fullmatch(text):
        raise InvalidKey
    return text


def _cached(text: str, key: PyJWK) -> tuple[bytes, Token | None]:
    """Return the name of a token in the cache, and the token if it was verified with this key."""
    name = hashlib.sha256(text.encode()).digest()
    token = _cache.get(name)
    return name, token if token is not None and token.key is key else None


def verify(text: str, issuer: Issuer, key: PyJWK) -> Token:
    """Return a token whose signature and claims are good (RFC 9068, 4). Raises InvalidKey and ExpiredKey."""
    options: Any = {
        "require": ["iss", "aud", "sub", "exp", "iat"],
        # The times are checked below, against the clock of the service.
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
    }
    audience = issuer.audience if isinstance(issuer.audience, str) else list(issuer.audience)
    algorithms = list(issuer.algorithms)
    try:
        payload = jwt.decode(text, key, algorithms, options, audience=audience, issuer=issuer.url)
        claims = msgspec.convert(payload, Claims)
    except _HOSTILE:
        raise InvalidKey from None
    _check(claims, issuer)
    thumbprint = claims.cnf.thumbprint if claims.cnf is not UNSET else ""
    return Token(
        key=key,
        subject=claims.sub,
        issued_at=claims.iat,
        expires_at=_end(claims, issuer) + issuer.leeway,
        scopes=_scopes(payload, issuer),
        thumbprint=thumbprint,
    )


def _origin(text: str) -> tuple[Issuer, str, str]:
    """Return the issuer, the name of the key and the algorithm that a token gives, not yet verified. Raises
    InvalidKey."""
    head, claims, _ = text.split(".")
    header, payload = _read_part(head), _read_part(claims)
    iss = payload.get("iss")
    issuer = issuers().get(iss) if isinstance(iss, str) else None
    kid, algorithm, kind = header.get("kid"), header.get("alg"), header.get("typ", "JWT")
    if issuer is None or not isinstance(kid, str) or len(kid) > 255 or algorithm not in issuer.algorithms:
        raise InvalidKey
    accepted = _ACCESS if issuer.typed else _TYPES
    if not isinstance(kind, str) or kind.upper() not in accepted or not _FORBIDDEN.isdisjoint(header):
        raise InvalidKey
    return issuer, kid, algorithm


def _read_part(part: str) -> dict[str, Any]:
    """Return the JSON object of a part in base64url. Raises InvalidKey.

    The library reads all parts again when it verifies the token. To have it read them here, too, would take a third of
    the time of a refusal.
    """
    try:
        value = orjson.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        raise InvalidKey from None
    if not isinstance(value, dict):
        raise InvalidKey
    return value


def _check(claims: Claims, issuer: Issuer) -> None:
    """Check the claims that no library checks, and the times. Raises InvalidKey, and ExpiredKey if all else is good."""
    now, leeway = clock.now().timestamp(), issuer.leeway
    begins = max(claims.iat, claims.iat if claims.nbf is UNSET else claims.nbf)
    is_timely = begins <= now + leeway
    is_name = 0 < len(claims.sub) <= 255 and claims.sub.isprintable()
    # A time too far away is no time. Comparisons with such numbers are still right, but no clock can show them.
    is_near = 0 <= claims.iat <= claims.exp < 1e11
    if not (is_timely and is_name and is_near and claims.is_for_access):
        raise InvalidKey
    if _end(claims, issuer) <= now - leeway:
        # A token of a certificate proves nothing without it.
        raise ExpiredKey if claims.cnf is UNSET else InvalidKey


def _end(claims: Claims, issuer: Issuer) -> float:
    """Return the Unix time at which a token expires or reaches the longest age of its issuer, whichever is first."""
    return min(claims.exp, claims.iat + issuer.longest_age)


def _scopes(payload: Mapping[str, Any], issuer: Issuer) -> frozenset[str] | None:
    """Return the scopes of a token, words or a list of them; None if the issuer's tokens have none."""
    if not issuer.scopes_claim:
        return None
    value = payload.get(issuer.scopes_claim, "")
    words = value.split() if isinstance(value, str) else value if isinstance(value, list) else ()
    return frozenset(word for word in words if isinstance(word, str))


def _read(meta: Mapping[str, Any]) -> Evidence | None:
    token = bearer_token(meta)
    return Evidence(NAME, token, bound_thumbprint(meta)) if token.startswith(START) else None


def _cards() -> dict[str, SecurityScheme]:
    if not issuers():
        raise ImproperlyConfigured(f"A2A_SCHEMES has {NAME}, but A2A_ISSUERS has no issuer")
    return {issuer.name: _card(issuer) for issuer in issuers().values()}


def _card(issuer: Issuer) -> SecurityScheme:
    text = f"An access token of {issuer.url} for this server"
    if issuer.jwks:
        return SecurityScheme(http_scheme="Bearer", bearer_format="JWT", description=text)
    return SecurityScheme(open_id_connect_url=issuer.url.rstrip("/") + DISCOVERY, description=text)


def _details() -> Json:
    """Return the first issuer and the audience that its tokens must have."""
    issuer = next(iter(issuers().values()))
    audience = issuer.audience if isinstance(issuer.audience, str) else issuer.audience[0]
    return {"issuer": issuer.url, "audience": audience}


SCHEME = Scheme(
    name=NAME,
    method="oidc",
    cards=_cards,
    details=_details,
    credential="an access token",
    place="Authorization: Bearer",
    challenge="Bearer",
    has_issuer=True,
    read=_read,
    prove=prove,
    refutes=refutes,
)
