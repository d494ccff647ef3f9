"""The bytes of a card that a signature covers: its members by the presence rules of A2A 1.0, in the form of RFC 8785.

The rules follow from the protobuf definition (docs/protocol.md#signatures). Members that it lacks are not covered.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import rfc8785

from a2a.types import Json


class Member(NamedTuple):
    """The presence rule of a member: whether a signature covers it when it is empty."""

    always: bool = False
    """True if it is covered when it is empty or false, too: a required member, an optional one that is set, a message,
    or a member of a oneof."""
    of: "dict[str, Member] | None" = None
    """The members of the message inside; None for a value that is covered as it is."""
    form: Literal["one", "list", "map"] = "one"
    """The place of the message: it is the value itself, or the value is a list or a map of messages."""


Schema = dict[str, Member]
"""The rules of a message: its members by name."""


def members(always: str = "", unless_empty: str = "", **messages: Member) -> Schema:
    """Return the rules of a message, from the names of its plain members and its members that are messages."""
    rules = dict.fromkeys(always.split(), Member(always=True)) | dict.fromkeys(unless_empty.split(), Member())
    return rules | messages


def message(schema: Schema) -> Member:
    """Return the rule of a member that is a message."""
    return Member(always=True, of=schema)


def list_of(schema: Schema, *, always: bool = False) -> Member:
    """Return the rule of a member that is a list of messages."""
    return Member(always=always, of=schema, form="list")


def map_of(schema: Schema) -> Member:
    """Return the rule of a member that is a map of messages."""
    return Member(of=schema, form="map")


INTERFACE = members("url protocolBinding protocolVersion", "tenant")
PROVIDER = members("url organization")
EXTENSION = members("params", "uri description required")
CAPABILITIES = members("streaming pushNotifications extendedAgentCard", extensions=list_of(EXTENSION))
REQUIREMENT = members(schemes=map_of(members("", "list")))
SKILL = members(
    "id name description tags", "examples inputModes outputModes", securityRequirements=list_of(REQUIREMENT)
)
FLOWS = members(
    authorizationCode=message(members("authorizationUrl tokenUrl scopes", "refreshUrl pkceRequired")),
    clientCredentials=message(members("tokenUrl scopes", "refreshUrl")),
    implicit=message(members("", "authorizationUrl refreshUrl scopes")),
    password=message(members("", "tokenUrl refreshUrl scopes")),
    deviceCode=message(members("deviceAuthorizationUrl tokenUrl scopes", "refreshUrl")),
)
SCHEME = members(
    apiKeySecurityScheme=message(members("location name", "description")),
    httpAuthSecurityScheme=message(members("scheme", "description bearerFormat")),
    oauth2SecurityScheme=message(members("", "description oauth2MetadataUrl", flows=message(FLOWS))),
    openIdConnectSecurityScheme=message(members("openIdConnectUrl", "description")),
    mtlsSecurityScheme=message(members("", "description")),
)
CARD = members(
    "name description version documentationUrl defaultInputModes defaultOutputModes iconUrl",
    supportedInterfaces=list_of(INTERFACE, always=True),
    provider=message(PROVIDER),
    capabilities=message(CAPABILITIES),
    securitySchemes=map_of(SCHEME),
    securityRequirements=list_of(REQUIREMENT),
    skills=list_of(SKILL, always=True),
)


def signed_members(card: Json) -> Json:
    """Return the members that a signature of this server covers.

    0.3 has no presence rules: each member that is present counts as set, and is covered.
    """
    if "supportedInterfaces" in card:
        return _by_rules(card, CARD)  # type: ignore[no-any-return]  # the result for an object is an object
    return {name: value for name, value in card.items() if name != "signatures" and value is not None}


def readings(card: Json) -> Iterator[Json]:
    """Yield the sets of members that the signature of another server may cover.

    They are the members by the rules, all members, and the members that are not empty, which the official Python SDK
    signs.
    """
    by_rules = signed_members(card)
    yield by_rules
    yield {name: value for name, value in card.items() if name != "signatures"}
    yield _without_empty(by_rules) or {}


def payloads(card: Json) -> tuple[bytes, ...]:
    """Return the payloads of this server's signatures: the card by the rules and the whole card, or one if equal.

    They differ for the card of 1.0 and 0.3 in one. Verifiers that rebuild the card from the protobuf's members accept
    the first signature, verifiers that take the JSON as it came accept the second.
    """
    whole = {name: value for name, value in card.items() if name != "signatures"}
    return tuple(dict.fromkeys((canonical(signed_members(card)), canonical(whole))))


def canonical(value: Json) -> bytes:
    """Return the canonical form of JSON (RFC 8785).

    Raises ValueError for values that have none: integers from 2**53 on, and lone surrogates.
    """
    return rfc8785.dumps(value)


def _by_rules(value: Any, schema: Schema) -> Any:
    """Return the members of a message that the rules cover."""
    if not isinstance(value, dict):
        return value
    return {
        name: _inside(value[name], member)
        for name, member in schema.items()
        if value.get(name) is not None and (member.always or value[name])
    }


def _inside(value: Any, member: Member) -> Any:
    """Return the covered part of one member's value."""
    if member.of is None:
        return value
    if member.form == "list" and isinstance(value, list | tuple):
        return [_by_rules(item, member.of) for item in value]
    if member.form == "map" and isinstance(value, dict):
        return {name: _by_rules(item, member.of) for name, item in value.items()}
    return _by_rules(value, member.of)


def _without_empty(value: Any) -> Any:
    """Return the value without members that are empty or contain only empty values; None if nothing remains."""
    if isinstance(value, dict):
        pairs = ((name, _without_empty(item)) for name, item in value.items())
        return {name: item for name, item in pairs if item is not None} or None
    if isinstance(value, list | tuple):
        return [item for item in map(_without_empty, value) if item is not None] or None
    return None if value == "" else value
