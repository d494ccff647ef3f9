"""The description of all paths of HTTP in OpenAPI 3.1: the routes of languages without an envelope, and other places.

A path that several versions or forms share is described for all of them at once, by `anyOf`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct
from msgspec.structs import fields

from a2a.choice import CallError, Endpoint
from a2a.descriptions.components import Components, summary_of, text_of
from a2a.envelopes import Member
from a2a.envelopes.bare import form, plain_members
from a2a.errors import Error
from a2a.language import VERSION_HEADER, Language, Method, Rest, Route
from a2a.requests import Request
from a2a.types import Json

OPENAPI = "3.1.0"
STREAM = "text/event-stream"
_VARIABLE = re.compile(r"\{(\w+)\}")


class Place(Struct, frozen=True, kw_only=True):
    """A path of HTTP that is no route of a language."""

    verb: str
    path: str
    summary: str
    answers: dict[int, str]
    """The texts about its answers, by their status."""
    scope: str | None
    """The scope that its caller needs: empty for any caller with a credential, None where none is asked for."""
    media: str = "application/json"
    """The media type of its answer with status 200; empty for an answer without a body."""
    schema: Callable[[Components], Json] | None = None
    """Returns the schema of that answer; None for any."""
    query: tuple[str, ...] = ()
    """The names that the query may have."""
    body: Json | None = None
    """The schema of its body, if it has one."""


def openapi(
    endpoints: Iterable[Endpoint],
    versions: Sequence[str],
    places: Iterable[Place],
    security_schemes: Json,
    info: Json,
    scope_of: Callable[[type[Request]], str],
) -> Json:
    """Return the description, without the addresses of the server. `versions` are those that A2A-Version may name."""
    components = Components()
    paths: Json = {}
    answers: Json = {}
    security: list[Json] = [{name: []} for name in security_schemes]
    for endpoint in [endpoint for endpoint in endpoints if endpoint.routes]:
        answers |= _refusals(components, endpoint)
        for prefix in endpoint.paths:
            for route in endpoint.routes:
                path = f"/{prefix}{route.path}" if prefix else route.path
                operation = _operation(components, endpoint, versions, route, scope_of)
                paths.setdefault(path, {})[route.verb.lower()] = operation
    for place in places:
        paths.setdefault(place.path, {})[place.verb.lower()] = _place(components, place)
    return {
        "openapi": OPENAPI,
        "info": info,
        "paths": paths,
        "security": security,
        "components": {
            "schemas": components.schemas,
            "responses": answers,
            "parameters": _headers(versions),
            "securitySchemes": security_schemes,
        },
    }


# ------------------------------------------------------------------ routes


def languages_of(endpoint: Endpoint, versions: Sequence[str], route: Route) -> list[tuple[Language, Method]]:
    """Return the languages that a call of a route may be in. A body may choose among them all, a version only some."""
    if route.verb == "POST":
        return [(language, language.methods[route.method]) for language in endpoint.languages]
    return list(_choices(endpoint, versions, route))


def _choices(endpoint: Endpoint, versions: Sequence[str], route: Route) -> Iterator[tuple[Language, Method]]:
    member = Member(id=None, method=route.method, params={}, source=None)
    for version in (None, *versions):
        try:
            yield endpoint.choose(member, version)
        except CallError:
            continue


def _operation(
    components: Components,
    endpoint: Endpoint,
    versions: Sequence[str],
    route: Route,
    scope_of: Callable[[type[Request]], str],
) -> Json:
    choices = languages_of(endpoint, versions, route)
    kind = choices[0][1].request
    result = _any(components.of(language, method.result) for language, method in choices)
    rest, variables = form(choices[0][0]), _VARIABLE.findall(route.path)
    content = {STREAM: {"schema": {"type": "string"}, "x-event": result}} if kind.streaming else _content(rest, result)
    operation: Json = {
        "operationId": re.sub(r"\W+", "_", f"{route.verb} {endpoint.name} {route.path}").lower().strip("_"),
        "summary": summary_of(kind),
        "description": text_of(kind),
        "tags": [endpoint.name],
        "parameters": [
            *({"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in variables),
            *_query(components, choices[0][0], route, variables),
            {"$ref": f"#/components/parameters/{VERSION_HEADER}"},
            *([{"$ref": "#/components/parameters/Last-Event-ID"}] if kind.streaming else []),
        ],
        "responses": {
            "200": {"description": "The events." if kind.streaming else "The result.", "content": content},
            **{name: {"$ref": f"#/components/responses/{endpoint.name}.{name}"} for name in _statuses(rest)},
        },
        "x-scope": scope_of(kind),
    }
    if route.verb == "POST":
        bodies = [_body(components, language, method, variables) for language, method in choices]
        is_required = all("required" in body for body in bodies)
        media = {name: {"schema": _any(bodies)} for name in ("application/json", rest.media)}
        operation["requestBody"] = {"required": is_required, "content": media}
    return operation


def _query(components: Components, language: Language, route: Route, variables: list[str]) -> list[Json]:
    """Return the parameters of the query."""
    if route.query is None:
        return []
    schemas = components.resolve(components.of(language, route.query))["properties"]
    names = [field.encode_name for field in fields(route.query) if field.encode_name in plain_members(route.query)]
    return [{"name": name, "in": "query", "schema": schemas[name]} for name in names if name not in variables]


def _body(components: Components, language: Language, method: Method, variables: list[str]) -> Json:
    """Return the schema of a body. Params that stand in the path may be left out."""
    schema = components.resolve(components.of(language, method.params))
    required = [name for name in schema.pop("required", []) if name not in variables]
    return schema | ({"required": required} if required else {})


def _content(rest: Rest, schema: Json) -> Json:
    return {rest.media: {"schema": schema}}


def _any(schemas: Iterable[Json]) -> Json:
    """Return the schema of a value by any of the schemas."""
    different: list[Json] = []
    for schema in schemas:
        if schema not in different:
            different.append(schema)
    return different[0] if len(different) == 1 else {"anyOf": different}


# ------------------------------------------------------------------ errors


def _statuses(rest: Rest) -> list[str]:
    """Return the HTTP statuses of errors, and the name for all that HTTP itself refuses."""
    return [*(str(status) for status in sorted({status for status, _ in rest.statuses.values()})), "default"]


def _refusals(components: Components, endpoint: Endpoint) -> Json:
    """Return the answers with errors of an endpoint, by their names."""
    rest = form(endpoint.neutral)
    content = _content(
        rest, _any(components.of(language, form(language).error_type) for language in endpoint.languages)
    )
    texts = {
        name: _reasons(endpoint.neutral, (error for error, (status, _) in rest.statuses.items() if str(status) == name))
        for name in _statuses(rest)
    } | {"default": "A refusal by HTTP itself, such as 405, 408, 413 or 415."}
    return {
        f"{endpoint.name}.{name}": {"description": text, "content": content} | _headers_of(name)
        for name, text in texts.items()
    }


def _headers_of(status: str) -> Json:
    name = {"401": "WWW-Authenticate", "429": "Retry-After", "503": "Retry-After"}.get(status)
    return {"headers": {name: {"schema": {"type": "string"}}}} if name else {}


def _reasons(language: Language, errors: Iterable[type[Error]]) -> str:
    return ", ".join(dict.fromkeys(language.reason(error) for error in errors))


# ------------------------------------------------------------ other places


def _place(components: Components, place: Place) -> Json:
    schema = place.schema(components) if place.schema else {}
    answers: Json = {str(status): {"description": text} for status, text in place.answers.items()}
    if place.media:
        answers["200"]["content"] = {place.media: {"schema": schema}}
    operation: Json = {
        "operationId": re.sub(r"\W+", "_", f"{place.verb} {place.path}").lower().strip("_"),
        "summary": place.summary,
        "parameters": [
            *(
                {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
                for name in _VARIABLE.findall(place.path)
            ),
            *({"name": name, "in": "query", "schema": {"type": "string"}} for name in place.query),
        ],
        "responses": answers,
    }
    if place.body is not None:
        operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": place.body}}}
    if place.scope is None:
        return operation | {"security": []}
    return operation | ({"x-scope": place.scope} if place.scope else {})


def _headers(versions: Sequence[str]) -> Json:
    """Return the headers of calls."""
    return {
        VERSION_HEADER: {
            "name": VERSION_HEADER,
            "in": "header",
            "description": "The version of the call, which must be one of its path.",
            "schema": {"type": "string", "examples": list(versions)},
        },
        "Last-Event-ID": {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last event that the client has seen.",
            "schema": {"type": "string"},
        },
    }
