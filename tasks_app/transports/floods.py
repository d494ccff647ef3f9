"""Refusals of floods of wrong credentials, without a request of Django, an exchange, and a task of the loop.

Addresses with too many wrong credentials are refused at once. While many wrong credentials come from other addresses,
keys and tokens without a cached caller are looked up or verified in groups (doubts.py). The wrong ones are refused.

The answers are those of enveloped.enveloped(), and over REST those of rest.rest(). A call that would get another answer
here, such as one whose path is unknown, goes the usual way. So do the first refusals of an address in a minute, which
are recorded.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import Any

from msgspec import Struct

from a2a import languages
from a2a.choice import Endpoint
from a2a.envelopes import AnyMember, BadMember, Failure, Id, Wrapping
from a2a.errors import Error, InvalidKey, InvalidRequest, ParseError, TooManyCalls
from a2a.language import Language, Method
from tasks_app.callers import access
from tasks_app.callers.peers import is_forwarded, origin_of, peer_in
from tasks_app.callers.schemes import Evidence, evidence_in
from tasks_app.exchanges.refusals import tally
from tasks_app.limits import strangers
from tasks_app.process.answering import Early, Whole
from tasks_app.transports.call import SMALL, date
from tasks_app.transports.challenges import challenge
from tasks_app.transports.doubts import Doubts, IsWrong, find_unknown, find_wrong
from tasks_app.transports.heads import Place, encode_whole, find_place, meta_of, wrap_of
from tasks_app.transports.http import Refusal, exceeded, refusal_of_encoding, wrong_type
from tasks_app.transports.http_requests import media_of
from tasks_app.transports.keys import is_cached, is_looked_up, refuter_of
from tasks_app.transports.pace import pace
from tasks_app.transports.receiving import early_choice, methods_of
from tasks_app.transports.refusal_memory import Answer
from tasks_app.transports.refusing import EarlyChoice, explain
from tasks_app.transports.rest import KINDS

doubted_secrets: Doubts[Evidence] = Doubts(find_unknown)
"""Calls whose key or token may not be stored."""
doubted_tokens: Doubts[IsWrong] = Doubts(find_wrong)
"""Calls whose token may be wrong, as its issuer's keys tell."""


class Head(Struct):
    """The head of a call that may be refused."""

    scope: Mapping[str, Any]
    meta: Mapping[str, str]
    """The headers, named as in WSGI."""
    peer: str | None
    origin: str
    """The address for limits of strangers."""
    place: Place
    refusal: Refusal | None
    """The refusal of a body that is no JSON by the head. It comes in place of that of the credential."""


class Body(Struct):
    """The part of a body that its refusal depends on."""

    wrapping: Wrapping
    choice: EarlyChoice | None = None
    """The language of the call, for the refusal of an unknown key."""


def refuse_early(scope: dict[str, Any]) -> Early | None:
    """Return the refusal of a request by its head; None for a request that is not refused, or not in this way."""
    is_flood = access.misses.is_flood()
    if not (is_flood or strangers.refuses_any()) or (place := find_place(scope)) is None:
        return None
    meta = meta_of(scope)
    if place.is_rest and refusal_of_encoding(meta):
        return None
    evidence = evidence_in(meta)
    if evidence is None or is_cached(evidence):
        return None
    peer = peer_in(meta)
    origin, refusal = origin_of(peer, forwarded=is_forwarded(meta)), None if place.is_rest else _refusal_of(meta)
    head = Head(scope, meta, peer, origin, place, refusal)
    try:
        strangers.check_failures(head.origin)
    except TooManyCalls as error:
        return partial(_refuse_address, head, error)
    if not is_flood:
        return None
    if is_looked_up(evidence):
        return partial(_look_up, head, evidence)
    refutes = refuter_of(evidence)
    return None if refutes is None else partial(_verify, head, partial(refutes, evidence))


def _refuse_address(head: Head, error: TooManyCalls, body: bytes) -> Whole | Answer | None:
    """Return the answer to a call of a refused address, or a future of it; None if it goes the usual way."""
    call = _read(head, body)
    if call is None or tally.records(head.peer):
        return None
    try:
        strangers.check_calls(head.origin)
    except TooManyCalls as earlier:
        error = earlier
    return pace.of(_refuse(head, call, error), head.scope)


def _look_up(head: Head, evidence: Evidence, body: bytes) -> Answer | None:
    """Return a future of the answer to a call whose key or token is unknown, or of None; None if it goes the usual
    way."""
    call = _read(head, body)
    return None if call is None else doubted_secrets.add(evidence, partial(_refuse_key, head, call), head.scope)


def _verify(head: Head, is_wrong: IsWrong, body: bytes) -> Answer | None:
    """Return a future of the answer to a call whose token may be wrong, or of None; None if it goes the usual way."""
    call = _read(head, body)
    return None if call is None else doubted_tokens.add(is_wrong, partial(_refuse_key, head, call), head.scope)


def _refuse_key(head: Head, call: Body) -> Whole | None:
    """Count a wrong key or token, and return the answer to its call; None if it goes the usual way."""
    if tally.records(head.peer):
        return None
    access.misses.count(1)
    try:
        strangers.check_calls(head.origin)
        strangers.check_failures(head.origin)
        strangers.count_failure(head.origin)
    except TooManyCalls as error:
        return _refuse(head, call, error)
    return _refuse(head, call, InvalidKey())


def _read(head: Head, body: bytes) -> Body | None:
    """Return the part of a body that its refusal depends on; None for a body that goes the usual way."""
    endpoint = languages.ALL.endpoints[head.place.endpoint]
    if len(body) > SMALL or exceeded(body, endpoint.body_setting):
        return None
    if head.place.is_rest:
        return _read_plain(head, body)
    if head.refusal is not None:
        return Body(wrap_of(endpoint.name))
    try:
        members = endpoint.envelope.parse(body)
    except (ParseError, InvalidRequest):
        return Body(wrap_of(endpoint.name))
    rpc_id = None if isinstance(members, list) or not isinstance(members.id, str | int | float) else members.id
    return Body(wrap_of(endpoint.name, rpc_id), _choice(endpoint, members))


def _choice(endpoint: Endpoint, members: AnyMember | list[AnyMember]) -> EarlyChoice | None:
    if not isinstance(members, BadMember):
        return early_choice(endpoint, members)
    language = endpoint.early(methods_of(members))
    return (language, ()) if language else None


def _read_plain(head: Head, body: bytes) -> Body | None:
    """Return what the refusal of a call over REST depends on; None for a body that is refused without a look at the
    credential."""
    if body and (not head.place.has_body or media_of(head.meta) not in KINDS):
        return None
    return Body(wrap_of(head.place.endpoint))


def _refuse(head: Head, call: Body, error: Error) -> Whole:
    """Count a refusal, and return its bytes."""
    wrapping, refusal = call.wrapping, head.refusal
    further: dict[str, str] = {}
    if refusal is not None:
        failure = wrapping.failure(refusal.error, None, refusal.status)
    elif isinstance(error, TooManyCalls):
        failure = _too_many(head.place.endpoint, wrapping.id, error.retry_after, tuple(error.facts.items()))
        further = {"Retry-After": str(error.retry_after)}
    else:
        failure = _in_language(wrapping, *call.choice) if call.choice else _unknown(head.place.endpoint, wrapping.id)
        further = {"WWW-Authenticate": challenge(head.scope["path"], "invalid_token")}
    tally.count(head.peer, failure.status)
    return encode_whole(failure, wrapping.media, head.scope, head.meta, further)


@lru_cache(maxsize=256, typed=True)
def _too_many(name: str, rpc_id: Id, retry_after: int, facts: tuple[tuple[str, str], ...]) -> Failure:
    """Return the error in its envelope. Most calls of a flood get the same bytes."""
    return wrap_of(name, rpc_id).failure(TooManyCalls(retry_after, **dict(facts)))


@lru_cache(maxsize=256, typed=True)
def _unknown(name: str, rpc_id: Id) -> Failure:
    """Return the error of an unknown key in its envelope."""
    return wrap_of(name, rpc_id).failure(InvalidKey())


def _in_language(wrapping: Wrapping, language: Language, methods: Sequence[Method]) -> Failure:
    """Return the error of an unknown key as a language has it that refuses strangers itself."""
    error = InvalidKey()
    explain(error, language, methods)
    if language.dates_errors:
        date(error)
    return wrapping.failure(error, language)


def _refusal_of(meta: Mapping[str, str]) -> Refusal | None:
    """Return the refusal of a body that is no JSON by its head, as http.body_of() raises it; None for any other."""
    kind = media_of(meta)
    return refusal_of_encoding(meta) if kind.endswith("json") else wrong_type(kind)
