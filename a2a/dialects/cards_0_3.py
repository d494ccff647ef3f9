"""The card of A2A 0.3 (docs/protocol.md#cards). The card of 0.2 is in v0_2.py."""

import orjson
from msgspec.structs import replace

from a2a.answers import CardAnswer
from a2a.dialects.json.members import about_members, extension_members, skill_members
from a2a.dialects.json.security import typed_form
from a2a.types import Card, Interface, Json, SecurityScheme, Skill


def encode_scheme(scheme: SecurityScheme) -> Json:
    """Return a SecurityScheme, whose `type` says its kind."""
    if scheme.flow:  # 0.3 has no `pkceRequired`.
        scheme = replace(scheme, flow=replace(scheme.flow, pkce_required=False))
    return typed_form(scheme)


def interfaces(card: Card) -> tuple[Interface, ...]:
    """Return the interfaces of 0.x, JSON-RPC first. A card without any has all its interfaces listed."""
    older = tuple(i for i in card.interfaces if i.version.startswith("0.")) or card.interfaces
    return tuple(sorted(older, key=lambda i: i.binding != "JSONRPC"))


def encode_requirements(card: Card, scopes: tuple[str, ...]) -> list[Json]:
    """Return one requirement for each scheme, with the scopes. A caller has to meet one of them."""
    return [{name: scopes} for name in card.security_schemes]


def encode_skill(skill: Skill, card: Card) -> Json:
    """Return an AgentSkill."""
    return skill_members(skill) | ({"security": encode_requirements(card, skill.scopes)} if skill.scopes else {})


def encode_card(card: Card) -> Json:
    """Return the pure card of 0.3 (docs/protocol.md#cards)."""
    own = interfaces(card)
    out: Json = {
        "protocolVersion": "0.3.0",
        "name": card.name,
        "description": card.description,
        "url": own[0].url,
        "preferredTransport": own[0].binding,
        "additionalInterfaces": [{"url": i.url, "transport": i.binding} for i in own],
        "version": card.version,
        "capabilities": {
            "streaming": card.streaming,
            "pushNotifications": card.push_notifications,
            "stateTransitionHistory": False,
        },
        "defaultInputModes": card.input_modes,
        "defaultOutputModes": card.output_modes,
        "skills": [encode_skill(skill, card) for skill in card.skills],
        "supportsAuthenticatedExtendedCard": card.extended_card,
    } | about_members(card)
    if card.extensions:
        out["capabilities"]["extensions"] = [extension_members(extension) for extension in card.extensions]
    if card.security_schemes:
        out["securitySchemes"] = {name: encode_scheme(scheme) for name, scheme in card.security_schemes.items()}
        out["security"] = encode_requirements(card, card.scopes)
    return out


def encode_extended_card(answer: CardAnswer) -> bytes:
    """Return the extended card, which is signed if the server signs cards."""
    return orjson.dumps(answer.sign(encode_card(answer.card)))
