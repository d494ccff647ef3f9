"""The description of the operators' API in OpenAPI 3.1, made from the resources."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from tasks_app import __version__
from tasks_app.api.index import Page
from tasks_app.api.paging import LIMIT, MOST
from tasks_app.api.resource import Resource
from tasks_app.api.resources import RESOURCES
from tasks_app.api.verbs import CREATE, Verb

Json = dict[str, Any]
TYPES: tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], Json], ...] = (
    (serializers.BooleanField, {"type": "boolean"}),
    (serializers.IntegerField, {"type": "integer"}),
    (serializers.FloatField, {"type": "number"}),
    (serializers.DateTimeField, {"type": "string", "format": "date-time"}),
    (serializers.CharField, {"type": "string"}),
    (serializers.ChoiceField, {"type": "string"}),
)
"""The types of JSON by those of fields. A field of another type may be any JSON."""
PROBLEM: Json = {
    "description": "A problem (RFC 9457) that says what is wrong, where, and what to do.",
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Description(Page):
    """The description of all resources."""

    def get(self, request: Request) -> Response:
        """Return the document."""
        return Response(describe())


def describe() -> Json:
    """Return the document of all resources."""
    paths: Json = {}
    for resource in RESOURCES:
        paths |= _paths(resource)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Taskdesk for operators", "version": __version__},
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Problem": {"type": "object", "properties": {name: {} for name in ("title", "detail", "errors")}}
            }
            | {resource.segment: _row_schema(resource) for resource in RESOURCES},
        },
    }


def _paths(resource: type[Resource]) -> Json:
    root, row = f"/api/v1/{resource.segment}/", {"$ref": f"#/components/schemas/{resource.segment}"}
    key = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
    page = {
        "type": "object",
        "properties": {
            "next": {"type": ["string", "null"]},
            "previous": {"type": ["string", "null"]},
            "results": {"type": "array", "items": row},
        },
    }
    paths: Json = {
        root: {
            "get": _operation(f"List {resource.segment}, newest first", page) | {"parameters": _parameters(resource)}
        },
        f"{root}{{id}}/": {
            "get": _operation(f"Show one row of {resource.segment}", row) | {"parameters": _pages(resource)},
            "parameters": [key],
        },
    }
    for verb in resource.verbs().values():
        if verb.name == CREATE:
            paths[root]["post"] = _act(verb, row)
            continue
        place = f"{root}{'{id}/' if verb.one else ''}{verb.name.replace('_', '-')}/"
        paths[place] = {"post": _act(verb, {"type": "object"})} | ({"parameters": [key]} if verb.one else {})
    return paths


def _operation(summary: str, schema: Json, status: str = "200") -> Json:
    answer = {"description": "The answer.", "content": {"application/json": {"schema": schema}}}
    return {"summary": summary, "responses": {status: answer, "default": PROBLEM}}


def _act(verb: Verb, schema: Json) -> Json:
    fields = verb.body().fields
    body = {
        "type": "object",
        "properties": {name: _schema(field) for name, field in fields.items()},
        "required": [name for name, field in fields.items() if field.required],
        "additionalProperties": False,
    }
    operation = _operation(verb.summary, schema, "201" if verb.name == CREATE else "200")
    return operation | {"requestBody": {"content": {"application/json": {"schema": body}}}}


def _parameters(resource: type[Resource]) -> list[Json]:
    limit = {"type": "integer", "minimum": 1, "maximum": MOST, "default": LIMIT}
    text: Json = {name: {"type": "string"} for name in (*resource.parameters(), "cursor")}
    text |= {name: {"type": "string", "enum": [*few]} for name in text if (few := resource.choices_of(name))}
    notes = {name: {"description": "Needs `since`, because no index has it."} for name in resource.bounded}
    schemas = text | {"limit": limit}
    return [{"name": name, "in": "query", "schema": each} | notes.get(name, {}) for name, each in schemas.items()]


def _pages(resource: type[Resource]) -> list[Json]:
    number = {"type": "integer", "minimum": 1}
    return [{"name": name, "in": "query", "schema": number} for name in resource.page_parameters]


def _row_schema(resource: type[Resource]) -> Json:
    serializer: Any = resource.serializer_class
    fields = serializer().fields
    return {"type": "object", "properties": {name: _schema(field) for name, field in fields.items()}}


def _schema(field: Any) -> Json:
    if isinstance(field, serializers.ListField):
        schema: Json = {"type": "array", "items": _schema(field.child)}
    else:
        schema = dict(next((schema for kind, schema in TYPES if isinstance(field, kind)), {}))
    if isinstance(field, serializers.ChoiceField):
        schema["enum"] = [*field.choices, *([None] if field.allow_null else [])]
    if field.allow_null and isinstance(schema.get("type"), str):
        schema["type"] = [schema["type"], "null"]
    return schema | ({"description": str(field.help_text)} if field.help_text else {})
