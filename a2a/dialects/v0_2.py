"""A2A 0.2 on JSON-RPC: 0.3 without the extended card's method, and with an older card (docs/protocol.md#versions)."""

import orjson
from msgspec.structs import replace

from a2a.answers import CardAnswer
from a2a.dialects import v0_3
from a2a.dialects.json.members import skill_members
from a2a.types import Card, Json


def encode_card(card: Card) -> Json:
    """Return the pure card of 0.2, whose skills do not say who may use them. Agents of that time call themselves 0.2.9,
    which was never released."""
    skills = [skill_members(skill) for skill in card.skills]
    return v0_3.encode_card(card) | {"protocolVersion": "0.2.9", "skills": skills}


def encode_extended_card(answer: CardAnswer) -> bytes:
    return orjson.dumps(answer.sign(encode_card(answer.card)))


DIALECT = replace(
    v0_3.DIALECT,
    name="a2a-0.2",
    version="0.2",
    # The extended card was a plain HTTP GET.
    methods={
        name: method for name, method in v0_3.DIALECT.methods.items() if name != "agent/getAuthenticatedExtendedCard"
    },
    encode_card=encode_card,
    on_cards=False,
    pushes_as=v0_3.DIALECT.name,
)
