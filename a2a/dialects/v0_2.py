"""A2A 0.2 over JSON-RPC: 0.3 with another card, and without the extended card's method (docs/protocol.md#versions)."""

import orjson
from msgspec.structs import replace

from a2a.answers import CardAnswer
from a2a.dialects import cards_0_3, v0_3
from a2a.dialects.json.members import skill_members
from a2a.types import Card, Json


def encode_card(card: Card) -> Json:
    """Return the card of 0.2. Its skills do not name the scopes that they need.

    Its protocol version is 0.2.9, as on the cards of agents of that time, although 0.2.9 was never released.
    """
    skills = [skill_members(skill) for skill in card.skills]
    return cards_0_3.encode_card(card) | {"protocolVersion": "0.2.9", "skills": skills}


def encode_extended_card(answer: CardAnswer) -> bytes:
    """Return the extended card, which is signed if the server signs cards."""
    return orjson.dumps(answer.sign(encode_card(answer.card)))


DIALECT = replace(
    v0_3.DIALECT,
    name="a2a-0.2",
    version="0.2",
    # 0.2 has no method for the extended card: clients GET it from a path of its own.
    methods={
        name: method for name, method in v0_3.DIALECT.methods.items() if name != "agent/getAuthenticatedExtendedCard"
    },
    encode_card=encode_card,
    on_cards=False,
    pushes_as=v0_3.DIALECT.name,
)
