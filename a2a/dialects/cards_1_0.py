"""The card of A2A 1.0 (docs/protocol.md#cards)."""

import orjson

from a2a.answers import CardAnswer
from a2a.dialects.json.members import about_members, extension_members, skill_members
from a2a.dialects.json.security import member_form, typed_form
from a2a.types import Card, Json, SecurityScheme, Skill


def encode_requirements(card: Card, scopes: tuple[str, ...]) -> list[Json]:
    """Return one requirement for each scheme, with the scopes. A caller has to meet one of them (A2A 1.0, 4.4.1)."""
    return [{"schemes": {name: {"list": scopes} if scopes else {}}} for name in card.security_schemes]


def encode_skill(skill: Skill, card: Card) -> Json:
    """Return an AgentSkill."""
    out = skill_members(skill)
    return out | ({"securityRequirements": encode_requirements(card, skill.scopes)} if skill.scopes else {})


def encode_scheme(scheme: SecurityScheme) -> Json:
    """Return a SecurityScheme, whose kind is the name of its member."""
    return member_form(typed_form(scheme))


def encode_card(card: Card) -> Json:
    """Return the pure card of 1.0 (docs/protocol.md#cards)."""
    out: Json = {
        "name": card.name,
        "description": card.description,
        "supportedInterfaces": [
            {"url": i.url, "protocolBinding": i.binding, "protocolVersion": i.version}
            | ({"tenant": i.tenant} if i.tenant else {})
            for i in card.interfaces
        ],
        "version": card.version,
        "capabilities": {
            "streaming": card.streaming,
            "pushNotifications": card.push_notifications,
            "extendedAgentCard": card.extended_card,
        },
        "defaultInputModes": card.input_modes,
        "defaultOutputModes": card.output_modes,
        "skills": [encode_skill(skill, card) for skill in card.skills],
    } | about_members(card)
    if card.extensions:
        out["capabilities"]["extensions"] = [extension_members(extension) for extension in card.extensions]
    if card.security_schemes:
        out["securitySchemes"] = {name: encode_scheme(scheme) for name, scheme in card.security_schemes.items()}
        out["securityRequirements"] = encode_requirements(card, card.scopes)
    return out


def encode_extended_card(answer: CardAnswer) -> bytes:
    """Return the extended card, which is signed if the server signs cards."""
    return orjson.dumps(answer.sign(encode_card(answer.card)))
