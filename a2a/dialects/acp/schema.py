"""The JSON Schema of ACP's requests and answers, made from the types of its methods; and the faults of requests."""

from typing import Any, Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from a2a.descriptions.faults import Fault, find_faults
from a2a.dialects.acp.card import AgentCard
from a2a.dialects.acp.faults import Fault as RpcError
from a2a.dialects.acp.language import LANGUAGE
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.types import Json

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_ID = {"type": ["string", "integer", "null"]}


class Envelope(Struct, forbid_unknown_fields=True):
    """A request of ACP, which has no other members."""

    jsonrpc: Literal["2.0"]
    method: str
    params: Json | UnsetType = UNSET
    id: str | int | None = None


def schema() -> Json:
    """Return the schema of all requests and answers. Those of a method are also named by it."""
    definitions: Json = {}
    for name, method in LANGUAGE.methods.items():
        definitions[f"{name}.request"] = _closed(
            {
                "jsonrpc": {"const": "2.0"},
                "method": {"const": name},
                "params": _of(method.params, definitions),
                "id": _ID,
            },
            ["jsonrpc", "method", *(["params"] if _needs_params(method) else [])],
        )
        definitions[f"{name}.answer"] = _answer("result", _of(method.result, definitions))
    definitions["error"] = _answer("error", _of(RpcError, definitions))
    definitions["card"] = _of(AgentCard, definitions)
    ways = [{"$ref": f"#/$defs/{name}"} for name in definitions if name.endswith((".request", ".answer"))]
    return {"$schema": DRAFT, "title": "ACP", "anyOf": [*ways, {"$ref": "#/$defs/error"}], "$defs": definitions}


def _answer(member: str, inner: Json) -> Json:
    return _closed({"jsonrpc": {"const": "2.0"}, "id": _ID, member: inner}, ["jsonrpc", "id", member])


def _closed(properties: Json, required: list[str]) -> Json:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _needs_params(method: Method) -> bool:
    """Return whether a request of the method must have params."""
    return any(fault.text == "is required" for fault in find_faults({}, method.params))


def _of(kind: Any, definitions: Json) -> Json:
    """Return the schema of a type. Types with a name are added to the definitions."""
    (plain,), named = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    definitions |= named
    return dict(plain)


def card_faults(card: Any) -> list[Fault]:
    """Return all faults of a card."""
    return find_faults(card, AgentCard)


def request_faults(request: Any) -> list[Fault]:
    """Return all faults of a request: those of its envelope, and those of the params of its method."""
    faults = find_faults(request, Envelope)
    name = request.get("method") if isinstance(request, dict) else None
    if not isinstance(name, str):
        return faults
    if name not in LANGUAGE.methods:
        return [*faults, Fault("method", f"must be one of {', '.join(LANGUAGE.methods)}")]
    params = request.get("params", {})
    return [*faults, *_param_faults(LANGUAGE.methods[name], params)] if isinstance(params, dict) else faults


def _param_faults(method: Method, params: Json) -> list[Fault]:
    """Return the faults of params: those against their type, or else the one that the method itself finds."""
    faults = [
        Fault(f"params.{place}" if place else "params", text) for place, text in find_faults(params, method.params)
    ]
    if faults:
        return faults
    try:
        method.decode(params)
    except InvalidParams as error:
        return [Fault(field if field == "params" else f"params.{field}", text) for field, text in error.violations]
    return []
