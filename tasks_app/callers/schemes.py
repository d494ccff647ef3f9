"""The schemes of authentication: how callers say who they are, in one table.

A2A_SCHEMES lists the schemes that are on. This list is the one declaration of a deployment. The cards show the cards of
its schemes, a 401 has their challenges and names their credentials, and a request is recognised by them alone, so that
these cannot disagree.

To add a scheme: write its Scheme in a module of its own, and add its name and its place to PLACES. A scheme has

- `cards()`, the forms in which cards and descriptions show it;
- `credential` and `place`, with which the message of a 401 says what to send;
- `challenge`, which a 401 has in WWW-Authenticate (transports/challenges.py);
- `read(meta)`, which finds the Evidence in the headers of a request, without looking whether it is valid;
- `prove(evidence)`, which returns a work item that finds the Caller, or None. Whatever must be awaited before, such as
  the keys of an issuer, is awaited here. It raises InvalidKey for evidence that no look-up could make valid;
- `refutes(evidence)`, if this process can recognise evidence that is not valid without a look-up, and `lacks(group)`,
  if one small look-up can tell which evidence of a group is not stored, so that a flood of it is refused early.

The work item must be repeatable, and a group of them must be one statement, as with access.FindCaller. A process trusts
the result for a second (transports/keys.py); streams, waiting calls and sockets do the item again every few seconds,
and end when its result is None. They end at `Caller.expires_at` in any case. The item fills in `Caller.credential`:
what the caller was recognised by, as `kind:id`, such as `key:12`.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, get_args

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string
from msgspec import Struct

from a2a.types import Json, SecurityScheme
from tasks_app.callers.access import Caller
from tasks_app.database.work import Work

PLACES = {
    "oauth": "tasks_app.oauth.scheme.OAUTH",
    "oidc": "tasks_app.callers.tokens.SCHEME",
    "bearer": "tasks_app.callers.api_keys.BEARER",
    "key": "tasks_app.callers.api_keys.HEADER",
    "mtls": "tasks_app.callers.certificates.SCHEME",
    "session": "tasks_app.callers.sessions.SCHEME",
}
"""Where each scheme is. They are read in this order, and the first that finds evidence in a request decides. A scheme
that takes bearer tokens of one form only comes before `bearer`, which takes all others."""

Method = Literal["oidc", "api_key", "oauth2", "mtls", "session"]


class Evidence(Struct, frozen=True):
    """An API key, a token or a certificate in a request, by which its caller may be recognised."""

    scheme: str
    """The name of the scheme that found it; empty if no scheme that is on takes it."""
    secret: str | tuple[str, ...]
    """The evidence itself. Of an API key it may be the digests, if a ticket stands for the key."""
    certificate: str = ""
    """The SHA-256 thumbprint of the client's certificate, to which a token may be bound; empty without one."""


UNUSABLE = Evidence("", "")
"""Evidence that no scheme takes. It is refused like a wrong key."""


class Scheme(Struct, frozen=True, kw_only=True):
    """A way to say who calls."""

    name: str
    cards: Callable[[], Mapping[str, SecurityScheme]]
    """Returns its forms on cards, by name. A caller has to meet one of them."""
    method: Method
    """The method of authentication on cards of ADR-002."""
    details: Callable[[], Json] = dict
    """Returns the further members beside that method."""
    credential: str
    """The credential in words, with an article, for the message of a 401."""
    place: str = ""
    """The header of the credential, as that message names it; empty for one that is in no header."""
    challenge: str = ""
    """The auth-scheme of its challenge, as IANA lists it (RFC 9110, 11.6.1); empty without one."""
    substitute: str = ""
    """The auth-scheme of the challenge if no scheme that is on has one, because each 401 must have one."""
    has_issuer: bool = False
    """Whether its evidence is a token of an authorization server. The challenge then leads to the document that names
    that server (RFC 9728)."""
    read: Callable[[Mapping[str, Any]], Evidence | None]
    """Returns the evidence in the headers of a request, named as in WSGI; None without any."""
    prove: Callable[[Evidence], Awaitable[Work[Caller | None]]]
    """Returns a work item that finds the caller, whose result is None for evidence that is not valid. Raises
    InvalidKey."""
    refutes: Callable[[Evidence], bool] | None = None
    """Returns whether evidence is not valid, as far as this process can tell without a look-up. It keeps the cost of
    floods low."""
    lacks: Callable[[Sequence[Evidence]], Awaitable[Sequence[bool]]] | None = None
    """Returns which evidence is not stored, by one look-up for all. It keeps the cost of floods low, too. A `refutes`
    beside it takes no time. Raises errors of the database."""


def schemes() -> tuple[Scheme, ...]:
    """Return the schemes that are on, in the order in which they are read."""
    return _load(tuple(settings.A2A_SCHEMES))


def evidence_in(meta: Mapping[str, Any]) -> Evidence | None:
    """Return the evidence in the headers of a request, named as in WSGI; None without any."""
    for scheme in schemes():
        if (evidence := scheme.read(meta)) is not None:
            return evidence
    return UNUSABLE if bearer_token(meta) or meta.get("HTTP_X_API_KEY", "").strip() else None


def scheme_of(evidence: Evidence) -> Scheme | None:
    """Return the scheme that found the evidence; None if it is not on."""
    return next((scheme for scheme in schemes() if scheme.name == evidence.scheme), None)


def security() -> dict[str, SecurityScheme]:
    """Return the schemes as cards and descriptions show them, by name. Raises ImproperlyConfigured."""
    forms: dict[str, SecurityScheme] = {}
    for scheme in schemes():
        for name, form in scheme.cards().items():
            if name in forms:
                raise ImproperlyConfigured(f"two ways to authenticate are called {name}: name the issuer otherwise")
            forms[name] = form
    return forms


def credentials() -> str:
    """Return the credentials that the schemes take, in words, for the message of a 401."""
    return _words_for(tuple(settings.A2A_SCHEMES))


def auth() -> Json:
    """Return the way to authenticate as cards of ADR-002 show it, which have room for one: tokens of service accounts
    before API keys, and these before all others."""
    order = get_args(Method)
    scheme = min(schemes(), key=lambda scheme: order.index(scheme.method))
    return {"method": scheme.method, **scheme.details()}


def token_url() -> str:
    """Return the address at which tokens are issued, as cards show it; empty if no scheme that is on has one."""
    return next((form.flow.token_url for form in security().values() if form.flow), "")


def bearer_token(meta: Mapping[str, Any]) -> str:
    """Return the token of `Authorization: Bearer`; empty without one."""
    scheme, _, value = meta.get("HTTP_AUTHORIZATION", "").partition(" ")
    return str(value.strip()) if scheme.lower() == "bearer" else ""


@lru_cache(maxsize=64)
def _words_for(names: tuple[str, ...]) -> str:
    places: dict[str, list[str]] = {}
    for scheme in _load(names):
        places.setdefault(scheme.credential, []).append(scheme.place)
    ways = {what: " or ".join(dict.fromkeys(filter(None, all_places))) for what, all_places in places.items()}
    return ", or ".join(f"{what} as {way}" if way else what for what, way in ways.items())


@lru_cache(maxsize=64)
def _load(names: tuple[str, ...]) -> tuple[Scheme, ...]:
    unknown = [name for name in names if name not in PLACES]
    if unknown or not names:
        raise ImproperlyConfigured(
            f"A2A_SCHEMES has {', '.join(unknown) or 'no scheme'}: list one or more of {', '.join(PLACES)}"
        )
    return tuple(import_string(place) for name, place in PLACES.items() if name in names)
