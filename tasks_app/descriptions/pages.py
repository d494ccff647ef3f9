"""The descriptions as bytes. Each is made once, when it is first asked for; only addresses are added to each answer."""

import hashlib
from collections.abc import Callable
from functools import lru_cache

import orjson

from a2a import languages
from a2a.answers import Description
from a2a.choice import Endpoint, minor
from a2a.descriptions.openapi import openapi
from a2a.descriptions.openrpc import openrpc
from a2a.dialects.cards_0_3 import encode_scheme
from a2a.languages import Languages
from a2a.requests import Describe, Request
from a2a.types import Json
from tasks_app import __version__
from tasks_app.callers.schemes import security
from tasks_app.descriptions.places import PLACES

SOCKETS = "rpc"
"""The name of the endpoint whose languages are spoken over WebSocket, too."""
ScopeOf = Callable[[type[Request]], str]
INFO: Json = {
    "title": "Taskdesk",
    "version": __version__,
    "description": "Params in snake_case are accepted as well in A2A 1.0, as in ProtoJSON. Params that a description "
    "lacks are ignored. Tasks, limits of callers and addresses of webhooks are checked after the params.",
}


def describe(request: Describe, agent: str | None, scope_of: ScopeOf) -> Description:
    """Return the description that the request asks for, with addresses of the agent if it names one."""
    tables = languages.ALL
    base = f"{request.address}/agents/{agent}" if agent else request.address
    if request.form == "openapi":
        return _with(_openapi(tables, scope_of), {"servers": [{"url": base or "/"}]})
    endpoint = tables.endpoints[request.endpoint]
    body = _openrpc(tables, endpoint.name, minor(request.version or ""), scope_of)
    return _with(body, {"servers": _servers(endpoint, base)})


def _servers(endpoint: Endpoint, base: str) -> list[Json]:
    """Return the addresses of an endpoint. A WebSocket connection has the methods of JSON-RPC."""
    addresses = [{"name": endpoint.name, "url": f"{base}/{endpoint.paths[0]}"}]
    if base.startswith("http") and endpoint.name == SOCKETS:
        addresses.append({"name": "websocket", "url": f"ws{base.removeprefix('http')}/ws"})
    return addresses


def _with(body: bytes, members: Json) -> Description:
    """Return a description with further members at its end."""
    whole = body[:-1] + b"," + orjson.dumps(members)[1:]
    return Description(body=whole, etag=f'"{hashlib.sha256(whole).hexdigest()[:32]}"')


@lru_cache(maxsize=16)
def _openrpc(tables: Languages, endpoint: str, version: str | None, scope_of: ScopeOf) -> bytes:
    return orjson.dumps(openrpc(tables.endpoints[endpoint], version, INFO, scope_of))


@lru_cache(maxsize=16)
def _openapi(tables: Languages, scope_of: ScopeOf) -> bytes:
    versions = [dialect.version for dialect in tables.dialects]
    # 0.3 writes schemes as OpenAPI does (A2A 0.3.0, 5.5.3).
    schemes: Json = {name: encode_scheme(scheme) for name, scheme in security().items()}
    return orjson.dumps(openapi(tables.endpoints.values(), versions, PLACES, schemes, INFO, scope_of))
