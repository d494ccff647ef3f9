"""The card of an agent in the form of ACP, and its types."""

import re
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from a2a.types import Card, Json, SecurityScheme, Skill

IDENTIFY = "acp:agent:identify"
"""The scope that every call of ACP needs."""
SCOPES = (
    IDENTIFY,
    *("acp:tasks:read", "acp:tasks:write", "acp:tasks:cancel"),
    *("acp:streams:read", "acp:streams:write", "acp:notifications:receive"),
)
"""All scopes of ACP: every server knows them, whatever else it calls them."""
Mode = Literal["text", "data", "file", "image", "audio"]
Scheme = Literal["oauth2", "bearer", "apikey"]


class CardProvider(Struct, forbid_unknown_fields=True):
    """The organization that runs an agent."""

    organization: str
    contact: str | UnsetType = UNSET
    website: str | UnsetType = UNSET


class CardCapabilities(Struct, rename="camel", forbid_unknown_fields=True):
    """The technical capabilities of an agent."""

    streaming: bool = True
    push_notifications: bool = True
    file_upload: bool = False
    multimodal: bool = False


class CardAuthentication(Struct, forbid_unknown_fields=True):
    """The credentials that an agent asks for."""

    schemes: list[Scheme] | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET


class CardSkill(Struct, rename="camel", forbid_unknown_fields=True):
    """A function of an agent."""

    id: Annotated[str, Meta(pattern="^[a-z0-9-]+$")]
    name: str
    description: str
    input_modes: list[Mode] | UnsetType = UNSET
    output_modes: list[Mode] | UnsetType = UNSET
    parameters: Json | UnsetType = UNSET


class CardMetadata(Struct, rename="camel", forbid_unknown_fields=True):
    """Words by which agents are found."""

    tags: list[str] | UnsetType = UNSET
    category: str | UnsetType = UNSET
    popularity: Annotated[float, Meta(ge=0, le=5)] | UnsetType = UNSET
    last_updated: str | UnsetType = UNSET


class AgentCard(Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """The card of an agent. It has no other members."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    description: Annotated[str, Meta(min_length=1, max_length=500)]
    version: Annotated[str, Meta(pattern=r"^[0-9]+\.[0-9]+\.[0-9]+$")]
    url: Annotated[str, Meta(pattern="^https://")]
    provider: CardProvider
    capabilities: CardCapabilities | UnsetType = UNSET
    authentication: CardAuthentication | UnsetType = UNSET
    skills: Annotated[list[CardSkill], Meta(min_length=1)] | UnsetType = UNSET
    metadata: CardMetadata | UnsetType = UNSET


def encode_card(card: Card) -> Json:
    """Return the card in the form of ACP. Its members have the lengths and characters that ACP allows.

    A server without HTTPS gives an address that clients of ACP refuse.
    """
    every = [card.input_modes, card.output_modes, *(skill.input_modes + skill.output_modes for skill in card.skills)]
    modes = {mode for media_types in every for mode in _modes(media_types)}
    wire = AgentCard(
        name=card.name[:100],
        description=(card.description or card.name)[:500],
        version=_version(card.version),
        url=next(i.url for i in card.interfaces if i.binding == "JSONRPC"),
        provider=_provider(card),
        capabilities=CardCapabilities(
            streaming=card.streaming,
            push_notifications=card.push_notifications,
            file_upload="file" in modes,
            multimodal=not modes.isdisjoint({"image", "audio"}),
        ),
        authentication=CardAuthentication(_schemes(card.security_schemes.values()), list(SCOPES)),
        skills=[_skill(skill, card) for skill in card.skills],
        metadata=CardMetadata(tags=sorted({tag for skill in card.skills for tag in skill.tags})),
    )
    built: Json = msgspec.to_builtins(wire)
    return built


def _provider(card: Card) -> CardProvider:
    """Return the provider, which a card of ACP must have: the agent itself where the operator names none."""
    if card.provider is None:
        return CardProvider(card.name)
    return CardProvider(card.provider.organization, website=card.provider.url)


def _version(version: str) -> str:
    """Return a version as three numbers."""
    numbers = re.findall(r"[0-9]+", version)[:3]
    return ".".join([*numbers, "0", "0", "0"][:3])


def _skill(skill: Skill, card: Card) -> CardSkill:
    return CardSkill(
        id=re.sub(r"[^a-z0-9]+", "-", skill.id.lower()),
        name=skill.name,
        description=skill.description,
        input_modes=_modes(skill.input_modes or card.input_modes),
        output_modes=_modes(skill.output_modes or card.output_modes),
    )


def _modes(media_types: Iterable[str]) -> list[Mode]:
    """Return the kinds of content of media types."""
    return list(dict.fromkeys(map(_mode, media_types)))


def _mode(media_type: str) -> Mode:
    match media_type.partition("/"):
        case ["text", _, _]:
            return "text"
        case ["image", _, _]:
            return "image"
        case ["audio", _, _]:
            return "audio"
        case ["application", _, "json"]:
            return "data"
        case _:
            return "file"


def _schemes(schemes: Iterable[SecurityScheme]) -> list[Scheme]:
    """Return the kinds of credentials, without those for which ACP has no word."""
    kinds: list[Scheme] = []
    for scheme in schemes:
        if scheme.flow:
            kinds.append("oauth2")
        elif scheme.http_scheme or scheme.open_id_connect_url:
            kinds.append("bearer")
        elif scheme.header:
            kinds.append("apikey")
    return list(dict.fromkeys(kinds))
