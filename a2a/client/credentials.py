"""Credentials: the headers that authenticate a call, and their sources."""

import asyncio
import ssl
from collections.abc import Mapping
from typing import Protocol

import httpx
import msgspec
from msgspec import Struct

from a2a.client.addresses import HTTP, check_address
from a2a.client.bodies import decompressed, raw
from a2a.client.clock import SYSTEM, Clock
from a2a.client.errors import NoToken
from a2a.client.sharing import SharedWork

EARLY = 300.0
"""Seconds before the expiry of a token at which it is renewed."""
LIFETIME = 3600.0
"""The lifetime of a token in seconds, if the endpoint does not name one."""
PATIENCE = 30.0
"""Seconds for an answer of the token endpoint."""
LARGEST = 1_000_000
"""The limit of bytes for such an answer."""
REFUSALS = frozenset(
    {
        *("invalid_request", "invalid_client", "invalid_grant", "unauthorized_client"),
        *("unsupported_grant_type", "invalid_scope", "invalid_target", "temporarily_unavailable"),
    }
)
"""The errors of a token endpoint (RFC 6749, 5.2; RFC 8707, 2). No other text of it is shown: it may hold the secret."""


class Credentials(Protocol):
    """A source of the headers that authenticate a call."""

    async def headers(self) -> dict[str, str]:
        """Return the headers. Raises ClientError."""

    def refused(self, headers: Mapping[str, str]) -> None:
        """Drop the credentials if a server has refused these headers (401). Later ones may be in use already."""


class Bearer:
    """A token that does not change."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def refused(self, headers: Mapping[str, str]) -> None:
        """Do nothing: there is no other token."""


class ApiKey:
    """An API key in a header of its own."""

    def __init__(self, key: str, *, header: str = "X-API-Key") -> None:
        self._headers = {header: key}

    async def headers(self) -> dict[str, str]:
        return self._headers

    def refused(self, headers: Mapping[str, str]) -> None:
        """Do nothing: there is no other key."""


class _Grant(Struct):
    """The answer of a token endpoint (RFC 6749, 5.1)."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  # the name of a scheme
    expires_in: float | None = None


class _Refusal(Struct):
    """The error of a token endpoint (RFC 6749, 5.2)."""

    error: str = ""


def _refusal_in(body: bytes) -> str:
    """Return the name of the error in an answer; empty if it has none that is known."""
    try:
        name = msgspec.json.decode(body, type=_Refusal).error
    except msgspec.DecodeError:
        return ""
    return name if name in REFUSALS else ""


class ClientCredentials:
    """Tokens by the client credentials grant of OAuth 2 (RFC 6749, 4.4).

    A token is kept, and renewed 300 seconds before its end, or after half of its life if that is shorter. Calls that
    need a new token at the same time wait for one request, and share its error.
    """

    def __init__(
        self,
        token_url: str,
        client_id: str,
        client_secret: str,
        *,
        scopes: tuple[str, ...] = (),
        audience: str | None = None,
        http: httpx.AsyncClient | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        self.token_url = token_url
        self._form = {"grant_type": "client_credentials"}
        self._form |= {"scope": " ".join(scopes)} if scopes else {}
        self._form |= {"audience": audience} if audience else {}
        self._secret = httpx.BasicAuth(client_id, client_secret)
        self._http = http
        self._clock = clock
        self._asking = SharedWork()
        self._token = ""
        self._renewal = 0.0

    async def headers(self) -> dict[str, str]:
        async with self._asking.attempt():
            if not self._token or self._clock.steady() >= self._renewal:
                now = self._clock.steady()
                grant = await self._ask()
                lifetime = LIFETIME if grant.expires_in is None else grant.expires_in
                self._token = grant.access_token
                self._renewal = now + max(lifetime - EARLY, lifetime / 2)
            return self._headers()

    def refused(self, headers: Mapping[str, str]) -> None:
        """Drop the token if it is the one in these headers, so that the next call gets another.

        Many calls may be under way with one token. The first refusal leads to another token, and the refusals that
        come later are still about the former one.
        """
        if headers == self._headers():
            self._token = ""

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    async def _ask(self) -> _Grant:
        if self._http is not None:
            return await self._asked_of(self._http)
        async with httpx.AsyncClient(timeout=PATIENCE) as http:
            return await self._asked_of(http)

    async def _asked_of(self, http: httpx.AsyncClient) -> _Grant:
        try:
            async with asyncio.timeout(PATIENCE):
                status, body = await self._answer(http)
        except (httpx.HTTPError, ssl.SSLError, TimeoutError) as error:
            raise self._failure(f"the token endpoint does not answer: {type(error).__name__}", retryable=True) from None
        except (httpx.InvalidURL, UnicodeError):
            # httpx reads the address of a redirect although it does not follow it.
            raise self._failure("the token endpoint leads to no address") from None
        if status != httpx.codes.OK:
            busy = status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR
            name = _refusal_in(body)
            what = f"the token endpoint refused with status {status}{': ' if name else ''}{name}"
            raise self._failure(what, retryable=busy)
        return self._grant(body)

    async def _answer(self, http: httpx.AsyncClient) -> tuple[int, bytes]:
        """Return the status and the body. Redirects are not followed, so that the secret reaches no other server."""
        check_address(self.token_url, HTTP)
        headers = {"Accept": "application/json", "Accept-Encoding": "identity"}
        body = bytearray()
        async with http.stream(
            "POST", self.token_url, data=self._form, auth=self._secret, headers=headers, follow_redirects=False
        ) as answer:
            async for chunk in decompressed(raw(answer), answer.headers, self.token_url):
                body += chunk
                if len(body) > LARGEST:
                    raise self._failure(f"the answer of the token endpoint has more than {LARGEST} bytes")
        return answer.status_code, bytes(body)

    def _grant(self, body: bytes) -> _Grant:
        try:
            grant = msgspec.json.decode(body, type=_Grant, strict=False)
        except msgspec.DecodeError:
            raise self._failure("the answer of the token endpoint is no grant") from None
        if not grant.access_token:
            raise self._failure("the token endpoint gave an empty token")
        if grant.token_type.lower() != "bearer":
            raise self._failure(f"the token endpoint gives tokens of the type {grant.token_type[:40]}, not Bearer")
        return grant

    def _failure(self, what: str, *, retryable: bool = False) -> NoToken:
        error = NoToken(what, where=self.token_url)
        error.retryable = retryable
        return error
