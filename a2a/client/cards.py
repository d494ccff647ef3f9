"""Cards of other servers: the decoder of all versions, and the choice of an interface (A2A 1.0, 8.3)."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from a2a.choice import minor
from a2a.client.addresses import is_as_safe
from a2a.client.errors import NoInterface
from a2a.dialects.json.security import MEMBERS
from a2a.types import SOCKET_BINDING, Card, Extension, Interface, Json, Provider, SecurityScheme, Skill

RPC, REST, SOCKET = "JSONRPC", "HTTP+JSON", "WEBSOCKET"
"""The bindings of the client. Cards of 1.0.0 may list a WebSocket by this word, those of 1.0.1 by a URI."""
ACP = "ACP"
"""The binding of the client for ACP over JSON-RPC (docs/systems/acp.md). No card of A2A lists it."""
ADR = "ADR-002"
"""The binding of the client for ADR-002, in the version 002 (docs/systems/adr-002.md). No card of A2A lists it."""
SPARC = "SPARC"
"""The binding of the client for SPARC over JSON-RPC, in the version 0.2 (docs/systems/sparc.md). No card lists it."""
ZONE = "ZONE"
"""The binding of the client for zones over JSON-RPC, in the version 1.0 (docs/systems/zones.md). No card lists it."""
VAPORA = "VAPORA"
"""The binding of the client for JSON-RPC with the errors of VAPORA (docs/systems/vapora.md). No card lists it."""
_NAMES = {SOCKET_BINDING: SOCKET}
"""The client's names of bindings that cards list by a URI."""
VERSIONS = ("1.0", "0.3", "0.2")
"""The versions of the client, the preferred first."""
MOST_OFFERS, WORDS = 5, 100
"""The interfaces of a card that an error names, and the characters of each value of them."""


def decode_card(wire: Json) -> Card:
    """Return the card, without members that the model lacks."""
    capabilities = wire.get("capabilities") or {}
    extended = capabilities.get("extendedAgentCard") or wire.get("supportsAuthenticatedExtendedCard")
    return Card(
        name=wire["name"],
        description=wire.get("description") or "",
        version=wire.get("version") or "",
        interfaces=tuple(_interfaces(wire)),
        skills=tuple(_skill(skill) for skill in wire.get("skills") or ()),
        input_modes=tuple(wire.get("defaultInputModes") or ()),
        output_modes=tuple(wire.get("defaultOutputModes") or ()),
        streaming=capabilities.get("streaming") or False,
        push_notifications=capabilities.get("pushNotifications") or False,
        extended_card=extended or False,
        extensions=tuple(_extension(extension) for extension in capabilities.get("extensions") or ()),
        security_schemes={name: _scheme(scheme) for name, scheme in (wire.get("securitySchemes") or {}).items()},
        provider=_provider(wire.get("provider")),
        documentation_url=wire.get("documentationUrl"),
        icon_url=wire.get("iconUrl"),
    )


def _interfaces(wire: Json) -> Iterator[Interface]:
    if "supportedInterfaces" in wire:
        for item in wire["supportedInterfaces"]:
            yield Interface(
                url=item["url"],
                binding=binding_name(item.get("protocolBinding") or RPC),
                version=_version(item.get("protocolVersion"), VERSIONS[0]),
                tenant=item.get("tenant") or None,
            )
        return
    # Cards of the oldest version need not name it.
    version = _version(wire.get("protocolVersion"), VERSIONS[-1])
    main = (wire["url"], wire.get("preferredTransport") or RPC)
    others = [(item["url"], item.get("transport") or RPC) for item in wire.get("additionalInterfaces") or ()]
    for url, binding in dict.fromkeys((main, *others)):
        yield Interface(url=url, binding=binding, version=version)


def binding_name(binding: str) -> str:
    """Return the client's name of a binding on a card."""
    return _NAMES.get(binding, binding)


def _version(text: str | None, default: str) -> str:
    return minor(text or default) or text or default


def _skill(wire: Json) -> Skill:
    return Skill(
        id=wire["id"],
        name=wire.get("name") or wire["id"],
        description=wire.get("description") or "",
        tags=tuple(wire.get("tags") or ()),
        examples=tuple(wire.get("examples") or ()),
        input_modes=tuple(wire.get("inputModes") or ()),
        output_modes=tuple(wire.get("outputModes") or ()),
    )


def _extension(wire: Json) -> Extension:
    return Extension(
        uri=wire["uri"],
        description=wire.get("description"),
        required=wire.get("required") or False,
        params=wire.get("params"),
    )


def _scheme(wire: Json) -> SecurityScheme:
    """Return a scheme in the form of either version. Of a kind that the model lacks, only the description remains."""
    http, key = _of_type(wire, "http"), _of_type(wire, "apiKey")
    header = key.get("name") if (key.get("location") or key.get("in")) == "header" else None
    inner: Any = next((value for value in wire.values() if isinstance(value, dict)), {})
    return SecurityScheme(
        http_scheme=http.get("scheme"),
        bearer_format=http.get("bearerFormat"),
        header=header,
        open_id_connect_url=_of_type(wire, "openIdConnect").get("openIdConnectUrl"),
        metadata_url=_of_type(wire, "oauth2").get("oauth2MetadataUrl"),
        mutual_tls=wire.get("type") == "mutualTLS" or MEMBERS["mutualTLS"] in wire,
        description=wire.get("description") or inner.get("description"),
    )


def _of_type(wire: Json, kind: str) -> Json:
    """Return the members of a scheme if it is of this type, in the form of either version."""
    return wire.get(MEMBERS[kind]) or (wire if wire.get("type") == kind else {})


def _provider(wire: Json | None) -> Provider | None:
    return Provider(organization=wire.get("organization") or "", url=wire.get("url") or "") if wire else None


# ------------------------------------------------------------------ choice


def choose(
    card: Card, source: str, versions: Sequence[str], bindings: Sequence[str], ways: Collection[tuple[str, str]]
) -> list[Interface]:
    """Return the interfaces that may be used, the preferred first: by version, by binding, then as the card lists them.

    Without bindings the card decides, but WebSocket comes last. A card that came over TLS leads to no address without
    it, but for those of this machine. Raises NoInterface.
    """
    usable = [
        interface
        for interface in card.interfaces
        if (interface.binding, interface.version) in ways
        and interface.version in versions
        and (not bindings or interface.binding in bindings)
        and is_as_safe(interface.url, source)
    ]
    if not usable:
        offers = ", ".join(map(_offer, card.interfaces[:MOST_OFFERS])) or "nothing"
        wish = f"{' or '.join(bindings) or 'any binding'} of {' or '.join(versions)}"
        raise NoInterface(f"the card of {card.name[:WORDS]} offers {offers}; wanted is {wish}", where=source)
    order = {binding: place for place, binding in enumerate(bindings)}

    def rank(one: Interface) -> tuple[bool, int, int]:
        return not bindings and one.binding == SOCKET, versions.index(one.version), order.get(one.binding, 0)

    return sorted(usable, key=rank)


def _offer(interface: Interface) -> str:
    return f"{interface.binding[:WORDS]} {interface.version[:WORDS]} at {interface.url[:WORDS]}"
