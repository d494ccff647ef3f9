"""The scheme of our own access tokens: how a request shows one, and how its caller is found."""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from msgspec import Struct
from oauth2_provider.models import AccessToken

from a2a.errors import ExpiredKey, InvalidKey
from a2a.types import OAuthFlow, SecurityScheme
from tasks_app import clock
from tasks_app.callers.access import Caller, FindStored, caller_for, misses
from tasks_app.callers.schemes import Evidence, Scheme, bearer_token
from tasks_app.cards.addresses import public
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Work
from tasks_app.oauth.resources import agents_of
from tasks_app.oauth.scopes import Scopes
from tasks_app.oauth.secrets import ACCESS, checksum

LENGTH = len(ACCESS) + 43
"""Characters of every access token."""


class FindTokenCaller(Work[Caller | None], Struct, frozen=True):
    """Finds the caller that an access token belongs to, by the token's digest."""

    lane = "read"
    repeatable = True

    checksum: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[Caller | ExpiredKey | None]:
        """Return the callers; None for a token that is unknown or revoked, and the error for one that has expired."""
        rows = AccessToken.objects.select_related("application__principal__tenant", "user")
        tokens = {row.token_checksum: row for row in rows.filter(token_checksum__in={item.checksum for item in items})}
        misses.count(sum(item.checksum not in tokens for item in items))
        return [caller_of(tokens[item.checksum]) if item.checksum in tokens else None for item in items]


class FindStoredTokens(FindStored, frozen=True):
    """Finds which of some digests are those of access tokens. Beside a flood this costs a fraction of
    FindTokenCaller."""

    @classmethod
    def stored(cls, all_digests: set[str]) -> frozenset[str]:
        """Return the digests of stored tokens among these."""
        rows = AccessToken.objects.filter(token_checksum__in=all_digests)
        return frozenset(rows.values_list("token_checksum", flat=True))


def caller_of(token: Any) -> Caller | ExpiredKey | None:
    """Return the caller of an access token: the principal of its client.

    None if the client or the operator who approved it may not be trusted any more, and the error if the token has
    expired.
    """
    client = token.application
    if not is_valid(token):
        return ExpiredKey() if is_trusted(token) else None
    return caller_for(
        client.principal,
        # The operator may have taken scopes from the client after the token was issued.
        frozenset(token.scope.split()).intersection(client.scopes.split()),
        credential=f"oauth:{client.pk}",
        reference=f"token:{token.pk}",
        expires_at=token.expires.timestamp(),
        agents=agents_of(token.resource),
    )


def find_again(ids: Sequence[tuple[int, float]]) -> list[Caller | None]:
    """Return the callers of access tokens by the ids of their rows. A revoked token has no row any more."""
    rows = AccessToken.objects.select_related("application__principal__tenant", "user").in_bulk({pk for pk, _ in ids})
    callers = [caller_of(rows[pk]) if pk in rows else None for pk, _ in ids]
    return [caller if isinstance(caller, Caller) else None for caller in callers]


def is_valid(token: Any) -> bool:
    """Return whether an access token is valid now."""
    return is_trusted(token) and token.expires > clock.now()


def is_trusted(token: Any) -> bool:
    """Return whether the client of an access token, and the operator who approved it, are active."""
    return token.application.is_active and (token.user is None or is_operator(token.user))


def is_operator(user: Any) -> bool:
    """Return whether a user may open the admin, where clients are approved."""
    return bool(user.is_active and user.is_staff)


async def _prove(evidence: Evidence) -> FindTokenCaller:
    if _refutes(evidence):
        raise InvalidKey
    return FindTokenCaller(checksum(str(evidence.secret)))


def _refutes(evidence: Evidence) -> bool:
    """Return whether a token has not the length of all tokens."""
    return len(evidence.secret) != LENGTH


async def _lacks(tokens: Sequence[Evidence]) -> list[bool]:
    """Return which tokens are not stored. Raises errors of the database."""
    checksums = tuple(checksum(str(token.secret)) for token in tokens)
    stored = await bridge.ask(FindStoredTokens(checksums))
    return [one not in stored for one in checksums]


def _read(meta: Mapping[str, Any]) -> Evidence | None:
    token = bearer_token(meta)
    return Evidence("oauth", token) if token.startswith(ACCESS) else None


def _cards() -> dict[str, SecurityScheme]:
    """Return the flows. A scheme on a card has one flow (A2A 1.0, 4.5.7)."""
    base, scopes = public(), Scopes().get_all_scopes()
    metadata_url = f"{base}/.well-known/oauth-authorization-server"
    token_url = f"{base}/oauth2/token"
    credentials = OAuthFlow(token_url=token_url, scopes=scopes)
    code = OAuthFlow(
        authorization_url=f"{base}/oauth2/authorize",
        token_url=token_url,
        refresh_url=token_url,
        scopes=scopes,
        pkce_required=True,
    )
    return {
        "oauthClientCredentials": SecurityScheme(
            flow=credentials, metadata_url=metadata_url, description="A token of this server, by a client's secret"
        ),
        "oauthAuthorizationCode": SecurityScheme(
            flow=code, metadata_url=metadata_url, description="A token of this server, by an operator's approval"
        ),
    }


OAUTH = Scheme(
    name="oauth",
    method="oauth2",
    cards=_cards,
    credential="an access token",
    place="Authorization: Bearer",
    challenge="Bearer",
    has_issuer=True,
    read=_read,
    prove=_prove,
    refutes=_refutes,
    lacks=_lacks,
)
