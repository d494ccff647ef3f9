"""Credentials: the headers that authenticate a call, and their sources."""

import asyncio
from typing import Protocol

import httpx
import msgspec
from msgspec import Struct

from a2a.client.clock import SYSTEM, Clock
from a2a.client.errors import NoToken

EARLY = 300.0
"""Seconds before the expiry of a token at which it is renewed."""
LIFETIME = 3600.0
"""The lifetime of a token in seconds, if the endpoint does not name one."""


class Credentials(Protocol):
    """A source of the headers that authenticate a call."""

    async def headers(self) -> dict[str, str]:
        """Return the headers. Raises ClientError."""

    def refused(self) -> None:
        """Drop credentials that a server has refused (401)."""


class Bearer:
    """A token that does not change."""

    def __init__(self, token: str) -> None:
        self._token = token

    async def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def refused(self) -> None:
        """Do nothing: there is no other token."""


class ApiKey:
    """An API key in a header of its own."""

    def __init__(self, key: str, *, header: str = "X-API-Key") -> None:
        self._headers = {header: key}

    async def headers(self) -> dict[str, str]:
        return self._headers

    def refused(self) -> None:
        """Do nothing: there is no other key."""


class _Grant(Struct):
    """The answer of a token endpoint (RFC 6749, 5.1)."""

    access_token: str
    token_type: str = "Bearer"  # noqa: S105  # the name of a scheme
    expires_in: float | None = None


class ClientCredentials:
    """Tokens by the client credentials grant of OAuth 2 (RFC 6749, 4.4).

    A token is kept, and renewed 300 seconds before its end, or after half of its life if that is shorter. Calls that
    need a new token at the same time wait for one request.
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
        self._lock = asyncio.Lock()
        self._token = ""
        self._renewal = 0.0

    async def headers(self) -> dict[str, str]:
        async with self._lock:
            if not self._token or self._clock.steady() >= self._renewal:
                now = self._clock.steady()
                grant = await self._ask()
                lifetime = LIFETIME if grant.expires_in is None else grant.expires_in
                self._token = grant.access_token
                self._renewal = now + max(lifetime - EARLY, lifetime / 2)
            return {"Authorization": f"Bearer {self._token}"}

    def refused(self) -> None:
        """Drop the token, so that the next call gets another."""
        self._token = ""

    async def _ask(self) -> _Grant:
        if self._http is not None:
            return await self._asked_of(self._http)
        async with httpx.AsyncClient(timeout=30.0) as http:
            return await self._asked_of(http)

    async def _asked_of(self, http: httpx.AsyncClient) -> _Grant:
        try:
            answer = await http.post(self.token_url, data=self._form, auth=self._secret)
        except httpx.HTTPError as error:
            raise self._failure(f"the token endpoint does not answer: {type(error).__name__}", retryable=True) from None
        if answer.status_code != httpx.codes.OK:
            busy = answer.status_code == httpx.codes.TOO_MANY_REQUESTS or answer.is_server_error
            raise self._failure(f"the token endpoint refused with status {answer.status_code}", retryable=busy)
        try:
            grant = msgspec.json.decode(answer.content, type=_Grant, strict=False)
        except msgspec.DecodeError:
            raise self._failure("the answer of the token endpoint is no grant") from None
        if grant.token_type.lower() != "bearer":
            raise self._failure(f"the token endpoint gives tokens of the type {grant.token_type[:40]}, not Bearer")
        return grant

    def _failure(self, what: str, *, retryable: bool = False) -> NoToken:
        error = NoToken(what, where=self.token_url)
        error.retryable = retryable
        return error
