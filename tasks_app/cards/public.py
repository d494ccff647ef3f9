"""Cards, the catalogue of agents, and keys, cached as bytes until an agent changes, as those of relays do."""

import hashlib
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache, partial

import orjson
from django.conf import settings
from msgspec import Struct
from msgspec.structs import replace

from a2a import signatures
from a2a.agents import Agent, registry
from a2a.answers import CardAnswer
from a2a.canonical import payloads
from a2a.card_choice import SIGNABLE
from a2a.cards import describe
from a2a.signatures import CardKey
from a2a.types import SOCKET_BINDING, Card, Json, Provider
from tasks_app import clock
from tasks_app.callers.access import Caller, has_scopes
from tasks_app.callers.permissions import is_permitted, may_see
from tasks_app.callers.schemes import security
from tasks_app.callers.scopes import OWN as SCOPES
from tasks_app.cards.addresses import own
from tasks_app.cards.terms import terms_of

EncodeCard = Callable[[Card], Json]
KEY_SET = "/.well-known/jwks.json"
OWN, FOREIGN = 1024, 64
"""Sizes of the caches. Cards for made-up Host headers have a small cache of their own, and so evict no real card."""
_change = (-1, clock.now())
"""The revision of the agents, and the time when this process noticed it."""


class Page(Struct, frozen=True):
    """A public document."""

    body: bytes
    etag: str
    """A weak tag, equal in all processes with the same key, although their signatures of a card differ."""


def public_card(name: str, address: str, encode: EncodeCard, *, whole: bool) -> Page | None:
    """Return the public card of an agent or of the whole server; None if there is none."""
    if registry.get(name) is None:  # Keep names that callers make up out of the caches.
        return None
    return (_own_card if address in own() else _foreign_card)(registry.revision, name, address, encode, whole)


def changed_at() -> datetime:
    """Return the time of last change of the cards, to the second."""
    global _change  # noqa: PLW0603  # one value for the process, as the registry is
    revision, time = _change
    if revision != registry.revision:
        time = clock.now().replace(microsecond=0)
        _change = (registry.revision, time)
    return time


def extended_card(agent: Agent, address: str, caller: Caller, *, whole: bool) -> CardAnswer:
    """Return the card of an agent or of the whole server, with all agents and skills that this caller may use."""
    usable = [other for other in registry if _may_use(caller, other)] if whole else []
    own_url, scopes = _url(agent, address, whole), tuple(SCOPES)
    card = describe(agent, own_url, usable, security=security(), scopes=scopes, all_skills=True)
    card = replace(card, skills=tuple(skill for skill in card.skills if is_permitted(caller, "skill", skill.id)))
    return CardAnswer(card=_completed(card), sign=partial(_signed, address=address))


def _may_use(caller: Caller, agent: Agent) -> bool:
    return has_scopes(caller, agent.scopes) and may_see(caller, agent.name)


def catalogue(address: str) -> Page:
    """Return the public list of agents."""
    return (_own_catalogue if address in own() else _foreign_catalogue)(registry.revision, address)


def key_set() -> Page:
    """Return the public keys, as a JSON Web Key Set."""
    return _key_set(settings.A2A_CARD_KEY)


def card_keys() -> tuple[CardKey, ...]:
    """Return the keys of A2A_CARD_KEY; the first one signs. Raises UnusableKey."""
    return _card_keys(settings.A2A_CARD_KEY)


# ------------------------------------------------------------------- bytes


def _card(revision: int, name: str, address: str, encode: EncodeCard, whole: bool) -> Page | None:
    agent = registry.get(name)
    if agent is None or not agent.listed:
        return None
    others = [other for other in registry if other.listed] if whole else []
    card = describe(agent, _url(agent, address, whole), others, security=security(), scopes=tuple(SCOPES))
    plain = encode(replace(_completed(card), terms=terms_of(agent)))
    return page_of(_signed(plain, address=address) if encode in SIGNABLE else plain)


def _catalogue(revision: int, address: str) -> Page:
    agents = [
        {
            "name": agent.name,
            "description": agent.description,
            "url": _url(agent, address, whole=False),
            "card": f"{address}/agents/{agent.name}/.well-known/agent-card.json",
            "skills": [
                {"id": skill.id, "name": skill.name, "description": skill.description, "tags": skill.tags}
                for skill in agent.skills
                if skill.listed
            ],
        }
        for agent in registry
        if agent.listed
    ]
    return page_of({"agents": agents})


_own_card, _foreign_card = lru_cache(maxsize=OWN)(_card), lru_cache(maxsize=FOREIGN)(_card)
_own_catalogue, _foreign_catalogue = lru_cache(maxsize=OWN)(_catalogue), lru_cache(maxsize=FOREIGN)(_catalogue)


@lru_cache(maxsize=1)
def _key_set(pem: str) -> Page:
    return page_of(signatures.key_set(_card_keys(pem)))


def page_of(document: Json) -> Page:
    """Encode a document. Its tag depends on the keys of signatures only: each signing makes another signature."""
    keys = [signature["protected"] for signature in document.get("signatures", ())]
    tag = hashlib.sha256(orjson.dumps(document | {"signatures": keys})).hexdigest()[:32]
    return Page(orjson.dumps(document), f'W/"{tag}"')


def _url(agent: Agent, address: str, whole: bool) -> str:
    return f"{address}/jsonrpc" if whole else f"{address}/agents/{agent.name}/jsonrpc"


def _completed(card: Card) -> Card:
    """Return the card with what the settings say about the installation."""
    provider = None
    if settings.A2A_PROVIDER and settings.A2A_PROVIDER_URL:
        provider = Provider(organization=settings.A2A_PROVIDER, url=settings.A2A_PROVIDER_URL)
    interfaces = [each for each in card.interfaces if settings.HAS_SOCKETS or each.binding != SOCKET_BINDING]
    return replace(
        card,
        interfaces=tuple(interfaces),
        streaming=settings.A2A_STREAMING,
        push_notifications=settings.A2A_PUSH,
        extended_card=settings.A2A_EXTENDED_CARD,
        provider=provider,
        documentation_url=settings.A2A_DOCUMENTATION_URL or None,
        icon_url=settings.A2A_ICON_URL or None,
    )


# -------------------------------------------------------------- signatures


@lru_cache(maxsize=8)
def _card_keys(pem: str) -> tuple[CardKey, ...]:
    return signatures.read_keys(pem)


def _signed(card: Json, *, address: str) -> Json:
    """Return the card with its signatures if there is a key. A card with a made-up address is never signed."""
    if not settings.A2A_CARD_KEY or address not in own():
        return card
    key_set_url, pem = address + KEY_SET, settings.A2A_CARD_KEY
    return card | {"signatures": [_signature(payload, key_set_url, pem) for payload in payloads(card)]}


@lru_cache(maxsize=256)
def _signature(payload: bytes, jku: str, pem: str) -> Json:
    """Sign a card. The cache key is the card's content, so a signature never belongs to another card."""
    return signatures.signature(payload, _card_keys(pem)[0], jku)
