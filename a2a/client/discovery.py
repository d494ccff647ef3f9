"""The discovery of an agent by its card, with the check of its signature (A2A 1.0, 8)."""

from collections.abc import Collection, Sequence
from typing import Any
from urllib.parse import urlsplit

from jwt.api_jws import PyJWS
from jwt.exceptions import PyJWTError
from msgspec import Struct

from a2a.client import refusals
from a2a.client.addresses import HTTP, check_address, is_loopback
from a2a.client.cards import decode_card
from a2a.client.errors import ClientError, InvalidResponse, ServerError, UntrustedCard
from a2a.client.http import Answer, Exchange, Http
from a2a.client.language import decoded
from a2a.client.patience import Retries, repeat
from a2a.language import VERSION_HEADER
from a2a.signatures import ALGORITHMS, MAX_SIGNATURES, BadSignature, verify
from a2a.types import Card, Json

PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
"""The paths of cards: that since 0.3, and that of 0.2."""
_ELSEWHERE = frozenset({404, 405, 410})
"""Statuses of a path without a card."""


class Trust(Struct, frozen=True, kw_only=True):
    """The keys by which cards must be signed."""

    keys: Json | None = None
    """A JWK Set that the caller trusts (RFC 7517)."""
    hosts: Collection[str] = ()
    """Hosts of key sets that a signature may name (`jku`), each with its port unless that is the usual one."""
    algorithms: Collection[str] = tuple(ALGORITHMS)


class FoundCard(Struct, frozen=True, kw_only=True):
    """A card with its place and its JSON."""

    card: Card
    wire: Json
    """The JSON of the card. If the card must be signed, these are only the members that the signature covers."""
    url: str


async def find_card(http: Http, url: str, versions: Sequence[str], retries: Retries, trust: Trust | None) -> FoundCard:
    """Return the card of the agent at a base address, or at the address of the card itself. Raises ClientError."""
    check_address(url, HTTP)  # before paths are added to it, so that an error names the address that was given
    places = [url] if url.endswith(".json") else [url.rstrip("/") + path for path in PATHS]
    if versions[0] == "0.2":
        places.reverse()
    headers = {VERSION_HEADER: versions[0], "Accept": "application/json"}
    for place in places:
        answer = await _fetch(http, Exchange("GET", place, headers), retries)
        if answer.status in _ELSEWHERE and place != places[-1]:
            continue
        if answer.status != 200:
            raise _no_card(answer, place, url)
        return await read_card(http, refusals.parsed(answer), place, retries, trust)
    raise AssertionError("the last place gives a card or an error")


async def read_card(http: Http, wire: Any, place: str, retries: Retries, trust: Trust | None) -> FoundCard:
    """Return the card in an answer, whose signature is verified if there is a trust. Raises ClientError."""
    wire = _object(wire, place)
    if trust is not None:
        wire = await _trusted(http, wire, place, trust, retries)
    return FoundCard(card=decoded(decode_card, wire, "the card", place), wire=wire, url=place)


def _no_card(answer: Answer, place: str, url: str) -> ServerError:
    """Return the error of an answer without a card.

    If there is no such place, the body does not count: its reason is about calls, such as that an operation is lacking.
    """
    if answer.status not in _ELSEWHERE:
        return refusals.of_rest(answer, place)
    error = refusals.of_status(answer, place)
    error.what = "there is no agent card at this address"
    if urlsplit(url).path.rstrip("/").endswith("/jsonrpc"):
        error.what += ": give that of the agent, without /jsonrpc"
    return error


async def _fetch(http: Http, exchange: Exchange, retries: Retries) -> Answer:
    async def attempt() -> Answer:
        answer = await http.fetch(exchange, http.timeouts.request)
        if answer.status >= 429:
            raise refusals.of_rest(answer, exchange.place)
        return answer

    return await repeat(attempt, retries, http.clock, safe=True)


def _object(wire: Any, place: str) -> Json:
    if not isinstance(wire, dict):
        raise InvalidResponse("the answer is not a JSON object", where=place)
    return wire


# -------------------------------------------------------------- signatures


async def believe(http: Http, card: FoundCard, trust: Trust, retries: Retries) -> None:
    """Verify the signatures of a card. Raises UntrustedCard."""
    await _trusted(http, card.wire, card.url, trust, retries)


async def _trusted(http: Http, wire: Json, place: str, trust: Trust, retries: Retries) -> Json:
    """Return the members of the card that a valid signature covers. Raises UntrustedCard."""
    why = ""
    sets = [trust.keys] if trust.keys else []
    for address in _key_sets(wire, trust):
        try:
            answer = await _fetch(http, Exchange("GET", address, {}, anonymous=True), retries)
            sets.append(_object(refusals.parsed(answer), address))
        except ClientError as error:
            why = f"its keys cannot be read: {error}"
    for keys in sets or [{"keys": []}]:
        try:
            return verify(wire, keys, trust.algorithms)
        except BadSignature as error:
            why = why or str(error)
    raise UntrustedCard(f"the card is not to be trusted: {why}", where=place)


def _key_sets(wire: Json, trust: Trust) -> list[str]:
    """Return the addresses of key sets that the signatures name, at hosts that the caller trusts."""
    addresses = {}
    signatures = wire.get("signatures")
    for entry in (signatures if isinstance(signatures, list) else [])[:MAX_SIGNATURES]:
        address = _header(entry).get("jku")
        if isinstance(address, str) and _is_trusted(address, trust.hosts):
            addresses[address] = True
    return list(addresses)


def _is_trusted(address: str, hosts: Collection[str]) -> bool:
    """Return whether keys may be fetched from an address: at one of the hosts, over TLS or on this machine."""
    try:
        return urlsplit(address).netloc in hosts and (address.startswith("https://") or is_loopback(address))
    except ValueError:
        return False


def _header(entry: Any) -> Json:
    try:
        return PyJWS().get_unverified_header(f"{entry['protected']}..{entry['signature']}")
    except (PyJWTError, KeyError, TypeError, ValueError):
        return {}
