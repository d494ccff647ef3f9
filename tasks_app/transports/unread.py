"""Refusals of large bodies that come without evidence of a caller, by their head alone: without a request of Django, an
exchange, and a task of the loop.

The answers are those of the lean handler. It answers the first refusals of an address in a minute, which are recorded.
"""

from functools import lru_cache
from http import HTTPStatus
from typing import Any

from django.conf import settings

from a2a.envelopes import Failure
from a2a.errors import Unauthenticated
from tasks_app.callers.peers import peer_in
from tasks_app.callers.schemes import credentials, evidence_in
from tasks_app.exchanges.refusals import tally
from tasks_app.process.answering import Whole
from tasks_app.transports.call import SMALL
from tasks_app.transports.challenges import challenge
from tasks_app.transports.heads import encode_whole, find_place, meta_of, wrap_of


def refuse_unread(scope: dict[str, Any]) -> Whole | None:
    """Return the answer to a request by its head; None for a request that goes the usual way."""
    if (place := find_place(scope)) is None:
        return None
    meta = meta_of(scope)
    if not SMALL < _length_in(meta) <= settings.A2A_BODY_BYTES:
        return None
    if evidence_in(meta) is not None or tally.records(peer := peer_in(meta)):
        return None
    media, failure = _answer(place.endpoint, credentials())
    tally.count(peer, failure.status)
    return encode_whole(failure, media, scope, meta, {"WWW-Authenticate": challenge(scope["path"])})


@lru_cache(maxsize=64)
def _answer(endpoint: str, credentials: str) -> tuple[str, Failure]:
    """Return the media type and the error of an endpoint."""
    wrapping = wrap_of(endpoint)
    return wrapping.media, wrapping.failure(Unauthenticated(credentials), None, HTTPStatus.UNAUTHORIZED)


def _length_in(meta: dict[str, str]) -> int:
    """Return the Content-Length; 0 if it is absent or no number."""
    length = meta.get("CONTENT_LENGTH", "")
    return int(length[:18]) if length.isascii() and length.isdigit() else 0
