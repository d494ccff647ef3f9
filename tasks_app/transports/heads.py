"""Requests that may be refused before the application sees them: their place, their headers, and the bytes of the
refusal."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.urls import Resolver404, resolve
from msgspec import Struct

from a2a import languages
from a2a.envelopes import Failure, Id, Wrapping, wrap
from a2a.envelopes.bare import NoSuchVerb
from a2a.envelopes.bare import find as find_route
from a2a.errors import MethodNotFound
from tasks_app.ids import uuid7
from tasks_app.process.answering import Whole
from tasks_app.transports.http import headers_of, request_id_in
from tasks_app.transports.origins import complete

MAX_CACHED_PATH = 128
"""Characters of a path whose endpoint is cached. A longer one has no place."""
MAX_CACHED_NAME = 64
"""Characters of a header whose name is cached."""


class Place(Struct, frozen=True):
    """The endpoint and the kind of a call."""

    endpoint: str
    """The name of the endpoint."""
    is_rest: bool = False
    """Whether the verb and the path name the method, in place of an envelope."""
    has_body: bool = True
    """Whether calls of this verb have a body."""


def find_place(scope: Mapping[str, Any]) -> Place | None:
    """Return the place of a call; None for a verb and a path whose calls go the usual way."""
    path = scope["path"]
    return _find(scope["method"], path) if len(path) <= MAX_CACHED_PATH and not scope["root_path"] else None


@lru_cache(maxsize=512)
def _find(verb: str, path: str) -> Place | None:
    try:
        match = resolve(path)
    except Resolver404:
        return None
    if (name := getattr(match.func, "enveloped", None)) is not None:
        return Place(name) if verb == "POST" else None
    if (name := getattr(match.func, "routed", None)) is None:
        return None
    try:
        find_route(languages.ALL.endpoints[name].routes, verb, "/" + match.kwargs["path"])
    except (MethodNotFound, NoSuchVerb):
        return None
    return Place(name, is_rest=True, has_body=verb == "POST")


def meta_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request, named as in WSGI, and the address of its connection, as Django's request has
    them."""
    meta = {"REMOTE_ADDR": scope["client"][0]} if scope.get("client") else {}
    for field, value in scope["headers"]:
        if b"_" in field:
            continue  # Named as in WSGI, X_Forwarded_For would be a header that the proxy alone may write.
        name = _usual_name(field) if len(field) <= MAX_CACHED_NAME else _name(field)
        text = value.decode("latin1")
        meta[name] = f"{meta[name]},{text}" if name in meta else text
    return meta


@lru_cache(maxsize=256, typed=True)
def wrap_of(endpoint: str, rpc_id: Id = None) -> Wrapping:
    """Return the envelope of one call of an endpoint, by its name."""
    row = languages.ALL.endpoints[endpoint]
    return wrap(row.envelope, rpc_id, row.neutral)


def encode_whole(
    failure: Failure, media: str, scope: Mapping[str, Any], meta: Mapping[str, str], further: dict[str, str]
) -> Whole:
    """Return the answer with an error and its further headers, as http.answer() makes it, and Cors for pages."""
    further["Content-Length"] = str(len(failure.payload))
    headers = {"Content-Type": media} | headers_of(request_id_in(meta) or uuid7(), further)
    fields = [(name.lower().encode(), value.encode("latin1")) for name, value in headers.items()]
    return failure.status, complete(fields, scope), failure.payload


def _name(field: bytes) -> str:
    """Return the name of a header as in WSGI."""
    name = field.decode("latin1").upper().replace("-", "_")
    return name if name in {"CONTENT_LENGTH", "CONTENT_TYPE"} else f"HTTP_{name}"


_usual_name = lru_cache(maxsize=512)(_name)
