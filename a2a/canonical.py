"""The bytes of a card that a signature covers: its members by the presence rules of A2A 1.0, in the form of RFC 8785.

The rules are those of the protobuf definition (docs/protocol.md#signatures). Members that it lacks are not covered.
"""

from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import rfc8785

from a2a.types import Json


class Member(NamedTuple):
    """A member of a message."""

    stays: bool = False
    """Also when it is empty or false: required, optional and set, a message, or one of a choice."""
    of: "dict[str, Member] | None" = None
    """The message inside; None for what is taken as it is."""
    form: Literal["one", "list", "map"] = "one"


Known = dict[str, Member]
STAYS, FILLED = Member(stays=True), Member()


def one(message: Known) -> Member:
    return Member(stays=True, of=message)


def each(message: Known, *, stays: bool = False) -> Member:
    return Member(stays=stays, of=message, form="list")


def named(message: Known) -> Member:
    return Member(of=message, form="map")


INTERFACE: Known = {"url": STAYS, "protocolBinding": STAYS, "tenant": FILLED, "protocolVersion": STAYS}
PROVIDER: Known = {"url": STAYS, "organization": STAYS}
EXTENSION: Known = {"uri": FILLED, "description": FILLED, "required": FILLED, "params": STAYS}
CAPABILITIES: Known = {
    "streaming": STAYS, "pushNotifications": STAYS, "extensions": each(EXTENSION), "extendedAgentCard": STAYS,
}  # fmt: skip
REQUIREMENT: Known = {"schemes": named({"list": FILLED})}
SKILL: Known = {
    "id": STAYS, "name": STAYS, "description": STAYS, "tags": STAYS, "examples": FILLED, "inputModes": FILLED,
    "outputModes": FILLED, "securityRequirements": each(REQUIREMENT),
}  # fmt: skip
FLOWS: Known = {
    "authorizationCode": one(
        {"authorizationUrl": STAYS, "tokenUrl": STAYS, "refreshUrl": FILLED, "scopes": STAYS, "pkceRequired": FILLED}
    ),
    "clientCredentials": one({"tokenUrl": STAYS, "refreshUrl": FILLED, "scopes": STAYS}),
    "implicit": one({"authorizationUrl": FILLED, "refreshUrl": FILLED, "scopes": FILLED}),
    "password": one({"tokenUrl": FILLED, "refreshUrl": FILLED, "scopes": FILLED}),
    "deviceCode": one({"deviceAuthorizationUrl": STAYS, "tokenUrl": STAYS, "refreshUrl": FILLED, "scopes": STAYS}),
}
SCHEME: Known = {
    "apiKeySecurityScheme": one({"description": FILLED, "location": STAYS, "name": STAYS}),
    "httpAuthSecurityScheme": one({"description": FILLED, "scheme": STAYS, "bearerFormat": FILLED}),
    "oauth2SecurityScheme": one({"description": FILLED, "flows": one(FLOWS), "oauth2MetadataUrl": FILLED}),
    "openIdConnectSecurityScheme": one({"description": FILLED, "openIdConnectUrl": STAYS}),
    "mtlsSecurityScheme": one({"description": FILLED}),
}
CARD: Known = {
    "name": STAYS, "description": STAYS, "supportedInterfaces": each(INTERFACE, stays=True), "provider": one(PROVIDER),
    "version": STAYS, "documentationUrl": STAYS, "capabilities": one(CAPABILITIES), "securitySchemes": named(SCHEME),
    "securityRequirements": each(REQUIREMENT), "defaultInputModes": STAYS, "defaultOutputModes": STAYS,
    "skills": each(SKILL, stays=True), "iconUrl": STAYS,
}  # fmt: skip


def covered(card: Json) -> Json:
    """Return the members that a signature of ours covers.

    0.3 has no rules of its own: there every member that is present was set, and stays.
    """
    if "supportedInterfaces" in card:
        return _by_rules(card, CARD)  # type: ignore[no-any-return]  # an object stays one
    return {name: value for name, value in card.items() if name != "signatures" and value is not None}


def readings(card: Json) -> Iterator[Json]:
    """Yield what the signature of another server may cover: the members by the rules, all members, or those that the
    official Python SDK keeps, which drops whatever is empty."""
    by_rules = covered(card)
    yield by_rules
    yield {name: value for name, value in card.items() if name != "signatures"}
    yield _without_empty(by_rules) or {}


def payloads(card: Json) -> tuple[bytes, ...]:
    """Return what our signatures cover: the card by the rules, and where it says more than they know, as the card of
    1.0 and 0.3 in one does, the whole card besides. Verifiers that rebuild the card from the protobuf's members find
    the first, those that take the JSON as it came the second."""
    whole = {name: value for name, value in card.items() if name != "signatures"}
    return tuple(dict.fromkeys((canonical(covered(card)), canonical(whole))))


def canonical(value: Json) -> bytes:
    """RFC 8785. Raises ValueError for what it has no form of: whole numbers from 2**53 on, half characters."""
    return rfc8785.dumps(value)


def _by_rules(value: Any, known: Known) -> Any:
    if not isinstance(value, dict):
        return value
    return {
        name: _inside(value[name], member)
        for name, member in known.items()
        if value.get(name) is not None and (member.stays or value[name])
    }


def _inside(value: Any, member: Member) -> Any:
    if member.of is None:
        return value
    if member.form == "list" and isinstance(value, list | tuple):
        return [_by_rules(item, member.of) for item in value]
    if member.form == "map" and isinstance(value, dict):
        return {name: _by_rules(item, member.of) for name, item in value.items()}
    return _by_rules(value, member.of)


def _without_empty(value: Any) -> Any:
    """None for what is empty, or holds only what is."""
    if isinstance(value, dict):
        pairs = ((name, _without_empty(item)) for name, item in value.items())
        return {name: item for name, item in pairs if item is not None} or None
    if isinstance(value, list | tuple):
        return [item for item in map(_without_empty, value) if item is not None] or None
    return None if value == "" else value
