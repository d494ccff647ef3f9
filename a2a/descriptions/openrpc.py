"""The description of an endpoint in OpenRPC 1.3: the methods that a call of one version can name there.

A method that two versions have is described for one of them, chosen as for a call of that version.
"""

from collections.abc import Callable, Iterator

from a2a.choice import CallError, Endpoint
from a2a.descriptions.components import Components, summary_of, text_of
from a2a.envelopes import Member
from a2a.errors import Error
from a2a.language import Language, Method
from a2a.requests import Request
from a2a.types import Json

OPENRPC = "1.3.2"


def openrpc(endpoint: Endpoint, version: str | None, info: Json, scope_of: Callable[[type[Request]], str]) -> Json:
    """Return the description, without the addresses of the server."""
    components, methods = Components(), list(methods_of(endpoint, version))
    languages = list({language.name: language for language, _, _ in methods}.values())
    return {
        "openrpc": OPENRPC,
        "info": info,
        "methods": [
            _method(components, language, name, method, scope_of(method.request)) for language, name, method in methods
        ],
        "x-errors": {language.name: components.of(language, language.error_type) for language in languages},
        "components": {
            "errors": {
                _key(language, error): {"code": cell.number, "message": error.sentence}
                for language in languages
                for error, cell in language.column.items()
            },
            "schemas": components.schemas,
        },
    }


def methods_of(endpoint: Endpoint, version: str | None) -> Iterator[tuple[Language, str, Method]]:
    """Yield the methods that calls of a version can name, each with its language."""
    for language in endpoint.languages:
        for name, method in language.methods.items():
            try:
                choice, _ = endpoint.choose(Member(id=None, method=name, params={}, source=None), version)
            except CallError:
                continue
            if choice is language:
                yield language, name, method


def _method(components: Components, language: Language, name: str, method: Method, scope: str) -> Json:
    params = components.of(language, method.params)
    whole = components.resolve(params)
    return {
        "name": name,
        "summary": summary_of(method.request),
        "description": text_of(method.request),
        "tags": [{"name": language.name}],
        "paramStructure": "by-name",
        "params": [
            {"name": member, "required": member in whole.get("required", ()), "schema": schema}
            for member, schema in whole.get("properties", {}).items()
        ],
        "result": {"name": "event" if method.request.streaming else "result"}
        | {"schema": components.of(language, method.result)},
        "errors": [{"$ref": f"#/components/errors/{_key(language, error)}"} for error in language.column],
        "x-params": params,
        "x-streaming": method.request.streaming,
        "x-scope": scope,
    }


def _key(language: Language, error: type[Error]) -> str:
    return f"{language.name}.{error.reason}"
