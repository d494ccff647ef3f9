"""All faults of a JSON value against the schema of a type, each with its place."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from a2a.types import Json

_KINDS: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "null": (type(None),),
}


class Fault(NamedTuple):
    """A fault of a value."""

    place: str
    """The path from the whole value, such as skills[1].id; empty for the whole."""
    text: str


def find_faults(value: Any, kind: Any) -> list[Fault]:
    """Return all faults of a value against the JSON Schema of a type."""
    (schema,), named = msgspec.json.schema_components([kind], ref_template="{name}")
    return list(_faults(value, schema, named, ""))


def _faults(value: Any, schema: Json, named: dict[str, Json], place: str) -> Iterator[Fault]:
    for part in _parts(schema, named):
        if "anyOf" in part:
            yield from _any(value, part["anyOf"], named, place)
        if (kind := part.get("type")) and not _is(value, kind):
            yield Fault(place, f"must be {_article(kind)}, not {_article(_name(value))}")
        elif "enum" in part and value not in part["enum"]:
            yield Fault(place, f"must be one of {', '.join(map(str, part['enum']))}")
        elif isinstance(value, dict):
            yield from _members(value, part, named, place)
        elif isinstance(value, list):
            yield from _items(value, part, named, place)
        elif isinstance(value, str):
            yield from _text(value, part, place)
        elif isinstance(value, int | float):
            yield from _number(value, part, place)


def _parts(schema: Json, named: dict[str, Json]) -> Iterator[Json]:
    """Yield a schema and those that it names."""
    yield schema
    if "$ref" in schema:
        yield from _parts(named[schema["$ref"]], named)
    for part in schema.get("allOf", ()):
        yield from _parts(part, named)


def _any(value: Any, choices: list[Json], named: dict[str, Json], place: str) -> Iterator[Fault]:
    """Yield the faults against the choice of the value's type that has the fewest."""
    kinds = [(kind, choice) for choice in choices for kind in _types(choice, named)]
    possible = [list(_faults(value, choice, named, place)) for kind, choice in kinds if _is(value, kind)]
    if possible:
        yield from min(possible, key=len)
    elif kinds:
        names = " or ".join(dict.fromkeys(_article(kind) for kind, _ in kinds))
        yield Fault(place, f"must be {names}, not {_article(_name(value))}")


def _types(schema: Json, named: dict[str, Json]) -> list[str]:
    """Return the JSON type of a schema, or nothing for one of any type."""
    return [part["type"] for part in _parts(schema, named) if "type" in part][:1]


def _members(value: Json, schema: Json, named: dict[str, Json], place: str) -> Iterator[Fault]:
    members = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield Fault(_below(place, name), "is required")
    for name, inner in value.items():
        if name in members:
            yield from _faults(inner, members[name], named, _below(place, name))
        elif schema.get("additionalProperties") is False:
            yield Fault(_below(place, name), "is not a member of this object")


def _items(value: list[Any], schema: Json, named: dict[str, Json], place: str) -> Iterator[Fault]:
    least, most = schema.get("minItems", 0), schema.get("maxItems", len(value))
    if len(value) < least:
        yield Fault(place, f"must have {least} items at least")
    if len(value) > most:
        yield Fault(place, f"must have {most} items at most, not {len(value)}")
    for index, item in enumerate(value):
        yield from _faults(item, schema.get("items", {}), named, f"{place}[{index}]")


def _text(value: str, schema: Json, place: str) -> Iterator[Fault]:
    least, most = schema.get("minLength", 0), schema.get("maxLength", len(value))
    if len(value) < least:
        yield Fault(place, "must not be empty" if least == 1 else f"must have {least} characters at least")
    elif len(value) > most:
        yield Fault(place, f"must have {most} characters at most, not {len(value)}")
    elif "pattern" in schema and not re.search(schema["pattern"], value):
        yield Fault(place, f"must match {schema['pattern']}")


def _number(value: float, schema: Json, place: str) -> Iterator[Fault]:
    if not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        yield Fault(place, f"must be from {schema.get('minimum', 'any')} to {schema.get('maximum', 'any')}")


def _below(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _is(value: Any, kind: str) -> bool:
    return isinstance(value, _KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


def _name(value: Any) -> str:
    return next(kind for kind in ("boolean", *_KINDS) if _is(value, kind))


def _article(kind: str) -> str:
    return kind if kind == "null" else f"{'an' if kind[0] in 'aeio' else 'a'} {kind}"
