"""The cards of the remote agents: read from time to time, stored, and used to describe the agents here.

Only what is shown here is stored of a card, with bounds. One process reads a card that is due, and the others find it
in the database at their next round.
"""

import asyncio
import logging
from datetime import timedelta
from functools import partial

import httpx
import msgspec
from django.db.models import Q
from msgspec import Struct

from a2a.agents import registry
from a2a.client import ClientError
from a2a.definitions import AgentDefinitionError
from a2a.failures import Failure
from a2a.media import ANYTHING, is_mode
from a2a.types import Card, Skill
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly
from tasks_app.masking import mask_text
from tasks_app.models import Relay
from tasks_app.outbound.policy import Blocked, Unknown
from tasks_app.relays.options import RelayOptions, relays
from tasks_app.relays.registration import UNREAD, agent_of
from tasks_app.relays.remotes import SECONDS, credentials_of, open_client

log = logging.getLogger(__name__)
CARD_SECONDS = 300.0
"""Seconds between two readings of a card."""
MOST_SKILLS, WORDS, WORD = 100, 2_000, 200
"""The most skills of a card, and characters of its descriptions and of its ids, names and tags."""
_current: dict[str, str] = {}
"""The stored descriptions by which the agents of this process are described."""


class Description(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The values of a card that the agent of a relay has, as they are stored."""

    description: str
    version: str
    skills: tuple[Skill, ...] = ()
    input_modes: tuple[str, ...] = (ANYTHING,)
    output_modes: tuple[str, ...] = (ANYTHING,)


def description_of(card: Card) -> Description:
    """Return what is stored of a card."""
    skills = {skill.id: _skill(skill) for skill in card.skills[:MOST_SKILLS] if 0 < len(skill.id) <= WORD}
    return Description(
        description=card.description.strip()[:WORDS] or UNREAD,
        version=card.version[:WORD] or "1.0.0",
        skills=tuple(skills.values()),
        input_modes=_modes(card.input_modes) or (ANYTHING,),
        output_modes=_modes(card.output_modes) or (ANYTHING,),
    )


def _skill(skill: Skill) -> Skill:
    return Skill(
        id=skill.id,
        name=skill.name[:WORD],
        description=skill.description[:WORDS],
        tags=tuple(tag[:WORD] for tag in skill.tags[:MOST_SKILLS] if tag),
        examples=tuple(example[:WORDS] for example in skill.examples[:MOST_SKILLS]),
        input_modes=_modes(skill.input_modes),
        output_modes=_modes(skill.output_modes),
    )


def _modes(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the media types that an agent here can have. Cards have others, such as `text`."""
    return tuple(dict.fromkeys(value for value in values[:MOST_SKILLS] if is_mode(value)))


# ------------------------------------------------------------- description


def describe_agents() -> None:
    """Describe each relay by its stored card, if that is new to this process."""
    options = {relay.name: relay for relay in relays()}
    for row in bridge.do(DoSlowly(lambda: list(Relay.objects.filter(name__in=options).exclude(card="")))):
        relay = options[row.name]
        # A card that was read from another address is not that of this agent.
        if row.url == relay.url and row.card != _current.get(row.name):
            _describe(relay, row.card)


def _describe(relay: RelayOptions, stored: str) -> None:
    _current[relay.name] = stored
    try:
        description = msgspec.json.decode(stored, type=Description)
        registry.add(agent_of(relay, {name: getattr(description, name) for name in Description.__struct_fields__}))
    except (msgspec.DecodeError, AgentDefinitionError) as error:
        log.warning("relay %s: its card cannot be shown here: %s", relay.name, error)


# ----------------------------------------------------------------- reading


def claim_due() -> list[RelayOptions]:
    """Return the relays whose cards this process shall read now."""
    return [relay for relay in relays() if bridge.do(Do(partial(_claim, relay)))]


def _claim(relay: RelayOptions) -> bool:
    """Claim the reading of a card. Return whether it is due, and no other process has claimed it."""
    now = clock.now()
    Relay.objects.bulk_create([Relay(name=relay.name)], ignore_conflicts=True)
    due = Relay.objects.filter(Q(due_at=None) | Q(due_at__lte=now) | ~Q(url=relay.url), name=relay.name)
    later = now + timedelta(seconds=CARD_SECONDS)
    is_claimed = bool(due.update(due_at=later))
    Relay.objects.filter(name=relay.name).exclude(url=relay.url).update(url=relay.url, card="", read_at=None)
    return is_claimed


async def read_card(relay: RelayOptions, http: httpx.AsyncClient) -> None:
    """Read a card and store what is shown of it, or why it could not be read."""
    try:
        async with asyncio.timeout(SECONDS):
            client = open_client(relay, http, await credentials_of(relay.name, http))
            stored = msgspec.json.encode(description_of(await client.card())).decode()
    except (ClientError, Blocked, Unknown, Failure, TimeoutError) as error:
        # PostgreSQL stores no NUL.
        words = f"{error}".replace("\0", "") or f"there was no answer within {SECONDS:g} s"
        problem = mask_text(words)[:WORDS]
        log.warning("relay %s: its card could not be read: %s", relay.name, problem)
        await bridge.ask(Do(lambda: Relay.objects.filter(name=relay.name).update(problem=problem)))
    else:
        values = {"card": stored, "problem": "", "read_at": clock.now()}
        await bridge.ask(Do(lambda: Relay.objects.filter(name=relay.name).update(**values)))
