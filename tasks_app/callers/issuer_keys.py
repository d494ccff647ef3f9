"""The public keys of issuers: fetched when a token needs them, one fetch at a time, and used while the issuer is away.

Tokens name their key, and every stranger can send one. So a name that is unknown leads to a fetch only if the last one
is some time ago, and a name that a fetch did not find is refused without another one for a while.
"""

import asyncio
import logging
import ssl
import time
from functools import lru_cache
from typing import Any

import orjson
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from a2a.errors import InvalidKey, Unavailable
from tasks_app.callers.issuers import DISCOVERY, Issuer
from tasks_app.off_loop import off_loop

log = logging.getLogger(__name__)
FRESH_SECONDS = 600.0
"""The age at which keys are fetched again if they are used. A key that the issuer has removed works no longer than
this."""
PAUSE_SECONDS = 10.0
"""The shortest time between two fetches."""
ABSENT_SECONDS = 30.0
"""Seconds for which a name that a fetch did not find is refused without another fetch. They are few, because the name
may be that of the issuer's next key, which a token showed before the issuer published it."""
LAST_SECONDS = 86_400.0
"""Seconds for which the last keys are used while the issuer is away."""
FETCH_SECONDS = 10.0
MOST_ABSENT = 1_000
MOST_BYTES = 262_144
SMALLEST_RSA = 2_048
_TYPES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_context: ssl.SSLContext | None = None


class FetchFailed(Exception):
    """Raised when an issuer does not send its keys. The sentence says why."""


class KeySource:
    """The keys of one issuer in this process."""

    def __init__(self, issuer: Issuer) -> None:
        self.issuer = issuer
        self.keys: dict[tuple[str, str], PyJWK] = {}
        """The keys by their name and algorithm."""
        self.absent: dict[str, float] = {}
        """The names that a fetch did not find, and until when they are refused."""
        self.fetched_at = self.tried_at = float("-inf")
        self.failed = False
        """Whether the last fetch failed."""
        self.flight: asyncio.Task[None] | None = None
        """The fetch under way."""

    async def find(self, kid: str, algorithm: str) -> PyJWK:
        """Return the key of a token. Raises InvalidKey, and Unavailable if the issuer cannot be asked."""
        now = time.monotonic()
        key = self.keys.get((kid, algorithm)) if now - self.fetched_at < LAST_SECONDS else None
        if key is not None:
            if now - self.fetched_at >= FRESH_SECONDS:
                self._start()
            return key
        if self.absent.get(kid, 0.0) > now:
            raise InvalidKey
        if (flight := self._start()) is not None:
            await asyncio.shield(flight)
        key = self.keys.get((kid, algorithm)) if time.monotonic() - self.fetched_at < LAST_SECONDS else None
        if key is not None:
            return key
        if self.failed:
            raise Unavailable(int(PAUSE_SECONDS), limit="the keys of the issuer of the token")
        if flight is not None and not any(name == kid for name, _ in self.keys):
            if len(self.absent) >= MOST_ABSENT:
                self.absent.clear()
            self.absent[kid] = time.monotonic() + ABSENT_SECONDS
        raise InvalidKey

    def find_known(self, kid: str, algorithm: str) -> PyJWK | None:
        """Return the key of a token as far as it is known; None if the issuer has to be asked. Raises InvalidKey if it
        is not asked for this name at the moment. Any thread may call it."""
        # While a fetch is under way, and after one that failed, find() waits for the issuer or says that it is away.
        # All this is read before the keys, in this order, because a fetch may begin and end on the loop meanwhile.
        now, tried_at = time.monotonic(), self.tried_at
        is_settled = (self.flight is None or self.flight.done()) and not self.failed
        if now - self.fetched_at < LAST_SECONDS and (key := self.keys.get((kid, algorithm))) is not None:
            return key
        if self.absent.get(kid, 0.0) > now or (is_settled and now - tried_at < PAUSE_SECONDS):
            raise InvalidKey
        return None

    def _start(self) -> "asyncio.Task[None] | None":
        """Return the fetch that is under way, or a new one; None if the last one was a moment ago."""
        loop = asyncio.get_running_loop()
        if self.flight is not None and not self.flight.done() and self.flight.get_loop() is loop:
            return self.flight
        if time.monotonic() - self.tried_at < PAUSE_SECONDS:
            return None
        self.flight = loop.create_task(self._fetch())
        self.tried_at = time.monotonic()  # In this order: find_known() reads the time first.
        return self.flight

    async def _fetch(self) -> None:
        """Fetch the keys. Without an answer that can be used, the last ones stay."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                keys = await fetch_keys(self.issuer)
        except Exception as error:  # noqa: BLE001  # an issuer may answer anything, and the last keys can be used
            self.failed = True
            log.warning("the keys of the issuer %s could not be fetched: %s", self.issuer.url, error or "no answer")
            return
        self.keys, self.failed, self.fetched_at = keys, False, time.monotonic()
        self.absent = {name: end for name, end in self.absent.items() if not any(name == kid for kid, _ in keys)}


@lru_cache(maxsize=32)
def source_of(issuer: Issuer) -> KeySource:
    """Return the keys of an issuer in this process."""
    return KeySource(issuer)


async def fetch_keys(issuer: Issuer) -> dict[tuple[str, str], PyJWK]:
    """Return the present keys of an issuer, by name and algorithm. Raises FetchFailed, and errors of the network."""
    url = issuer.jwks or await _discover(issuer)
    return read_keys(await _get(url), issuer)


def read_keys(document: Any, issuer: Issuer) -> dict[tuple[str, str], PyJWK]:
    """Return the keys in a JSON Web Key Set that may sign tokens of the issuer (RFC 7517, 5). Raises FetchFailed.

    Keys of other kinds are left out, and so are private keys, which a published set must not have.
    """
    members = document.get("keys") if isinstance(document, dict) else None
    if not isinstance(members, list):
        raise FetchFailed("the answer is no JSON Web Key Set")
    keys: dict[tuple[str, str], PyJWK] = {}
    for member in members:
        if not isinstance(member, dict) or not _signs(member):
            continue
        for algorithm in issuer.algorithms:
            if (key := _key(member, algorithm)) is not None:
                keys[member["kid"], algorithm] = key
    if not keys:
        raise FetchFailed("the answer has no key for " + ", ".join(issuer.algorithms))
    return keys


def _signs(member: dict[str, Any]) -> bool:
    kid, use = member.get("kid"), member.get("use", "sig")
    return isinstance(kid, str) and bool(kid) and use == "sig" and "d" not in member and "k" not in member


def _key(member: dict[str, Any], algorithm: str) -> PyJWK | None:
    """Return the key for an algorithm; None if it is of another kind, or too short."""
    if member.get("kty") != _TYPES[algorithm[:2]] or member.get("alg", algorithm) != algorithm:
        return None
    try:
        key = PyJWK(member, algorithm)
        key.Algorithm.prepare_key(key.key)
    except (PyJWTError, ValueError, TypeError):
        return None
    return key if getattr(key.key, "key_size", SMALLEST_RSA) >= SMALLEST_RSA or member["kty"] != "RSA" else None


async def _discover(issuer: Issuer) -> str:
    """Return the address of the keys, as the issuer says it (OpenID Connect Discovery 1.0, 4). Raises FetchFailed."""
    document = await _get(issuer.url.rstrip("/") + DISCOVERY)
    if not isinstance(document, dict) or document.get("issuer") != issuer.url:
        raise FetchFailed("its metadata is of another issuer")
    url = document.get("jwks_uri")
    if not isinstance(url, str):
        raise FetchFailed("its metadata has no jwks_uri")
    return url


async def _get(url: str) -> Any:
    """Return the JSON at an address, which the rules for outbound calls must allow. Raises FetchFailed."""
    import httpx  # loaded with the first token: servers with API keys only need no HTTP client

    from tasks_app.outbound.bodies import UNCOMPRESSED, read_body
    from tasks_app.outbound.dialling import client
    from tasks_app.outbound.policy import Blocked, Unknown, target

    headers = UNCOMPRESSED | {"Accept": "application/json"}
    try:
        target(url)
        async with (
            client(seconds=FETCH_SECONDS, verify=await _tls(), most_read=MOST_BYTES) as http,
            http.stream("GET", url, headers=headers) as answer,
        ):
            content = await read_body(answer, MOST_BYTES)
    except Blocked as error:
        raise FetchFailed(f"{url} {error}; A2A_OUTBOUND_HOSTS lists hosts that may be called") from None
    except (httpx.HTTPError, Unknown, OSError) as error:
        raise FetchFailed(f"{url}: {error or type(error).__name__}") from None
    if answer.status_code != 200:
        raise FetchFailed(f"{url} answers {answer.status_code}")
    try:
        return orjson.loads(content)
    except orjson.JSONDecodeError:
        raise FetchFailed(f"{url} answers no JSON") from None


async def _tls() -> ssl.SSLContext:
    """Return the context of all fetches, which takes long to make."""
    global _context  # noqa: PLW0603  # one value for the process
    if _context is None:
        _context = await off_loop(ssl.create_default_context)
    return _context
