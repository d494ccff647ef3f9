"""Refusals of addresses with too many wrong credentials, without a request of Django, an exchange, and a task of the
loop.

The answers are those of receiving.receive(). Calls for which they would not be, such as those whose body cannot be
read, go the usual way, and so do the first refusals of an address in a minute, which are recorded.
"""

from collections.abc import Mapping
from functools import lru_cache, partial
from typing import Any

from django.urls import Resolver404, resolve

from a2a import languages
from a2a.envelopes import BadMember, Failure, Id, wrap
from a2a.errors import InvalidRequest, ParseError, TooManyCalls
from tasks_app.callers import strangers
from tasks_app.callers.peers import origin_of, peer_in
from tasks_app.callers.schemes import evidence_in
from tasks_app.exchanges.refusals import tally
from tasks_app.ids import uuid7
from tasks_app.process.connections import Early, Whole
from tasks_app.transports.call import SMALL
from tasks_app.transports.http import header_of, headers_of, request_id_in
from tasks_app.transports.keys import is_cached

MAX_CACHED_PATH = 128
"""Characters of a path whose endpoint is cached."""
UNUSUAL = frozenset({"HTTP_ORIGIN", "HTTP_CONTENT_ENCODING"})
"""Headers of calls that go the usual way: of pages of other origins, and of bodies that cannot be read."""
TOO_MANY = 429
"""The status of the refusals."""


def refuse_early(scope: dict[str, Any]) -> Early | None:
    """Return the refusal of a request by its head; None for a request that is not refused, or not in this way."""
    if not strangers.refuses_any() or scope["method"] != "POST" or scope["root_path"]:
        return None
    path = scope["path"]
    endpoint = _endpoint(path) if len(path) <= MAX_CACHED_PATH else None
    meta = meta_of(scope)
    if endpoint is None or not UNUSUAL.isdisjoint(meta) or not _is_json(meta):
        return None
    evidence = evidence_in(meta)
    if evidence is None or is_cached(evidence):
        return None
    peer = peer_in(meta)
    origin = origin_of(peer, partial(header_of, meta))
    try:
        strangers.check_failures(origin)
    except TooManyCalls as error:
        return partial(_refuse, meta, peer, origin, endpoint, error)
    return None


def _refuse(
    meta: Mapping[str, Any], peer: str | None, origin: str, endpoint: str, error: TooManyCalls, body: bytes
) -> Whole | None:
    """Return the answer to a call of a refused address; None if it goes the usual way."""
    if len(body) > SMALL:
        return None
    try:
        members = languages.ALL.endpoints[endpoint].envelope.parse(body)
    except (ParseError, InvalidRequest):
        return None
    if isinstance(members, BadMember):
        return None
    rpc_id = None if isinstance(members, list) or not isinstance(members.id, str | int | float) else members.id
    if not tally.count_unrecorded(peer, TOO_MANY):
        return None
    try:
        strangers.check_calls(origin)
    except TooManyCalls as earlier:
        error = earlier
    failure, media = _failure(endpoint, rpc_id, error.retry_after, tuple(error.facts.items()))
    headers = {"Content-Type": media} | headers_of(request_id_in(meta) or uuid7(), None)
    headers |= {"Retry-After": str(error.retry_after), "Content-Length": str(len(failure.payload))}
    fields = [(name.lower().encode(), value.encode("latin1")) for name, value in headers.items()]
    return failure.status, fields, failure.payload


@lru_cache(maxsize=256, typed=True)
def _failure(name: str, rpc_id: Id, retry_after: int, facts: tuple[tuple[str, str], ...]) -> tuple[Failure, str]:
    """Return the error in its envelope, and its media type. Most calls of a flood get the same bytes."""
    endpoint = languages.ALL.endpoints[name]
    wrapping = wrap(endpoint.envelope, rpc_id, endpoint.neutral)
    return wrapping.failure(TooManyCalls(retry_after, **dict(facts))), wrapping.media


@lru_cache(maxsize=512)
def _endpoint(path: str) -> str | None:
    """Return the name of the endpoint with an envelope that a path belongs to; None for any other path."""
    try:
        view = resolve(path).func
    except Resolver404:
        return None
    name: str | None = getattr(view, "enveloped", None)
    return name


def meta_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """Return the headers of a request, named as in WSGI, and the address of its connection, as Django's request has
    them."""
    meta = {"REMOTE_ADDR": scope["client"][0]} if scope.get("client") else {}
    for field, value in scope["headers"]:
        name = field.decode("latin1").upper().replace("-", "_")
        if name not in {"CONTENT_LENGTH", "CONTENT_TYPE"}:
            name = f"HTTP_{name}"
        text = value.decode("latin1")
        if name in meta:
            text = meta[name] + ("; " if name == "HTTP_COOKIE" else ",") + text
        meta[name] = text
    return meta


def _is_json(meta: Mapping[str, str]) -> bool:
    return meta.get("CONTENT_TYPE", "").partition(";")[0].strip().lower().endswith("json")
