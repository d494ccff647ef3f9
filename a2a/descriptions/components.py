"""The JSON Schemas of the types in a language's tables, and texts about its methods."""

from typing import Any

import msgspec

from a2a.language import Language
from a2a.requests import Request
from a2a.types import Json

PLACE = "#/components/schemas/"
"""The place of named schemas in both kinds of descriptions."""


class Components:
    """The named schemas of a description. Those of a language begin with its name, since languages share words."""

    def __init__(self) -> None:
        self.schemas: dict[str, Json] = {}

    def of(self, language: Language, kind: Any) -> Json:
        """Return the schema of a type. Types with a name are added to the named schemas."""
        (schema,), named = msgspec.json.schema_components([kind], ref_template=f"{PLACE}{language.name}.{{name}}")
        self.schemas |= {f"{language.name}.{name}": _plain(inner) for name, inner in named.items()}
        return dict(_plain(schema))

    def resolve(self, schema: Json) -> Json:
        """Return an object's schema with all its members and rules in one place."""
        merged: Json = {}
        for part in (schema, *schema.get("allOf", ())):
            whole = self.schemas[part["$ref"].removeprefix(PLACE)] if "$ref" in part else part
            for name, value in whole.items():
                if name == "properties":
                    merged[name] = merged.get(name, {}) | {
                        member: merged.get(name, {}).get(member, {}) | inner for member, inner in value.items()
                    }
                elif name == "required":
                    merged[name] = [*merged.get(name, []), *value]
                elif name != "allOf":
                    merged[name] = value
        return merged


def _plain(schema: Any) -> Any:
    """Return the schema in words that all drafts of JSON Schema read alike: earlier ones ignore all beside a `$ref`."""
    if isinstance(schema, list):
        return [_plain(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    plain = {name: _plain(inner) for name, inner in schema.items() if (name, inner) != ("required", [])}
    if isinstance(plain.get("$ref"), str) and len(plain) > 1:
        reference = {"$ref": plain.pop("$ref")}
        return {"allOf": [reference, plain]}
    return plain


def text_of(kind: type[Request]) -> str:
    """Return the text about a request, from its docstring."""
    return " ".join((kind.__doc__ or "").split())


def summary_of(kind: type[Request]) -> str:
    """Return the first sentence about a request."""
    return text_of(kind).partition(" (A2A")[0].partition(". ")[0].rstrip(".")
