"""The issuers of tokens that A2A_ISSUERS lists, with the rules for their tokens."""

from functools import lru_cache
from typing import Annotated

import msgspec
import orjson
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from msgspec import Meta, Struct

from tasks_app.callers.paths import check_tenant_name

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""The algorithms that tokens may be signed with. All are asymmetric: a public key makes no token."""
DISCOVERY = "/.well-known/openid-configuration"
Text = Annotated[str, Meta(min_length=1, max_length=255)]


class Issuer(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An issuer, and the rules for its tokens."""

    url: str = ""
    """The `iss` of its tokens."""
    audience: Text | tuple[Text, ...]
    """The `aud` of tokens for this server; one of several is enough."""
    algorithms: tuple[str, ...] = ("RS256", "PS256", "ES256", "EdDSA")
    scopes_claim: str = "scope"
    """The claim with the scopes of a token; empty if accounts alone say what they may."""
    tenant: Text = "default"
    """The tenant of accounts that are created."""
    jwks: str = ""
    """The URL of its keys; empty to ask the issuer itself (OpenID Connect Discovery 1.0, 4)."""
    leeway: Annotated[float, Meta(ge=0, le=300)] = 30
    """Seconds by which its clock may be wrong."""
    longest_age: Annotated[float, Meta(gt=0)] = 86_400
    """Seconds since `iat` after which a token is refused, whatever its `exp` says."""
    typed: bool = False
    """Whether its tokens must have the type at+jwt (RFC 9068, 2.1)."""
    create: bool = False
    """Whether an account is created for a subject that has none."""
    scopes: str = "*"
    """The most scopes of accounts that are created."""
    name: str = ""
    """Its name on cards; `oidc` by default, with a number from the second issuer on."""


def issuers() -> dict[str, Issuer]:
    """Return the issuers by the `iss` of their tokens. Raises ImproperlyConfigured."""
    return _read(orjson.dumps(settings.A2A_ISSUERS))


@lru_cache(maxsize=8)
def _read(value: bytes) -> dict[str, Issuer]:
    by_url: dict[str, Issuer] = {}
    for place, (url, options) in enumerate(orjson.loads(value).items(), 1):
        try:
            issuer = msgspec.convert(options, Issuer)
            check_tenant_name(issuer.tenant)
        except (msgspec.ValidationError, ValueError) as error:
            raise ImproperlyConfigured(f"A2A_ISSUERS: {url}: {error}") from None
        if unsafe := [name for name in issuer.algorithms if name not in ALGORITHMS]:
            raise ImproperlyConfigured(
                f"A2A_ISSUERS: {url}: {', '.join(unsafe)} is not one of {', '.join(ALGORITHMS)}, which are asymmetric"
            )
        name = issuer.name or ("oidc" if place == 1 else f"oidc-{place}")
        by_url[url] = msgspec.structs.replace(issuer, url=url, name=name)
    return by_url
