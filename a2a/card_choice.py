"""The choice of a card's encoder by path and version, and the hybrid card, which clients of 0.3 and of 1.0 can read."""

from collections.abc import Callable
from typing import Literal

from a2a import languages
from a2a.choice import minor
from a2a.dialects import adr, cards_0_3, cards_1_0, v0_2, v1_0
from a2a.language import Dialect
from a2a.types import Card, Json

CardFile = Literal["agent.json", "agent-card.json", "card"]
"""A file name under /.well-known/: clients of 0.2 ask for the first, all others of A2A for the second. Clients of
ADR-002 ask for the third, at the address of the agent itself."""

_MEMBERS_OF_0_3 = (
    "url",
    "preferredTransport",
    "additionalInterfaces",
    "protocolVersion",
    "security",
    "supportsAuthenticatedExtendedCard",
)


def hybrid_card(card: Card) -> Json:
    """Return the 1.0 card with the members by which clients of 0.3 call the agent (docs/protocol.md#card-of-both)."""
    new, old = cards_1_0.encode_card(card), cards_0_3.encode_card(card)
    members = {name: old[name] for name in _MEMBERS_OF_0_3 if name in old}
    schemes = {name: scheme | old["securitySchemes"][name] for name, scheme in new.get("securitySchemes", {}).items()}
    return new | members | ({"securitySchemes": schemes} if schemes else {})


SIGNABLE: frozenset[Callable[[Card], Json]] = frozenset(
    {cards_1_0.encode_card, cards_0_3.encode_card, hybrid_card, adr.encode_card}
)
"""Encoders of cards that the server signs (docs/protocol.md#card-of-both, #signatures)."""


Form = tuple[Callable[[Card], Json], tuple[str, ...]]
"""The encoder of a card, and the A2A versions of the card."""


def card_languages() -> dict[str, Form]:
    """Return the languages whose cards can be asked for by name: the versions of A2A, and others with their own."""
    forms: dict[str, Form] = {each.name: (each.encode_card, (each.version,)) for each in languages.ALL.dialects}
    for name, language in languages.ALL.by_name.items():
        if language.encode_card is not None and not isinstance(language, Dialect):
            forms[name] = language.encode_card, ()
    return forms


def card_encoder(path: CardFile, version: str | None, language: str = "") -> Form | None:
    """Return the form for a path and an A2A-Version (docs/protocol.md#cards). None if `language` names no form.

    An unknown version gets the hybrid card. The name of a language takes the place of path and version.
    """
    if path == "card":
        return adr.encode_card, ()
    if language:
        return card_languages().get(language)
    if path == "agent.json":
        return v0_2.encode_card, (v0_2.DIALECT.version,)
    number = minor(version or "") or ""
    for dialect in languages.ALL.dialects:
        if dialect.version == number:
            return dialect.encode_card, (number,)
    if number.partition(".")[0] == v1_0.DIALECT.version.partition(".")[0]:
        # From 1.0 on, clients of a later minor version can read the card of an earlier one.
        return cards_1_0.encode_card, (v1_0.DIALECT.version,)
    return hybrid_card, languages.ALL.card_versions
