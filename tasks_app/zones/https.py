"""The carrier over HTTPS: a POST to the execution zone for each call."""

import asyncio
import ssl
from weakref import WeakKeyDictionary

import httpx

from tasks_app.outbound.bodies import UNCOMPRESSED, read_body
from tasks_app.outbound.policy import Blocked, Unknown
from tasks_app.relays.remotes import guarded_http, most_bytes
from tasks_app.zones.carriers import PATIENCE, SECONDS, NoAnswer, Untrusted

REPEATABLE = 500
"""The lowest HTTP status after which a call is sent again. An answer of JSON-RPC counts whatever its status."""


REMEDY = (
    "A certificate of an authority of your own is trusted by its file in SSL_CERT_FILE, which then replaces those of "
    "the system. A2A_EXECUTION must have the host name that is in the certificate"
)


class Https:
    """Calls a server with an API key."""

    patience = PATIENCE

    def __init__(self, url: str, key: str) -> None:
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()
        self.url = f"{url}/jsonrpc"
        self.headers = UNCOMPRESSED | {"Content-Type": "application/json"}
        self.headers |= {"Authorization": f"Bearer {key}"} if key else {}

    async def carry(self, body: bytes, owner: str = "") -> bytes:
        """Bring a call, within SECONDS: the limits of the client are for each read, so an answer that comes byte by
        byte would run into none."""
        try:
            async with (
                asyncio.timeout(SECONDS),
                self._client().stream("POST", self.url, content=body, headers=self.headers) as response,
            ):
                content = await read_body(response, most_bytes())
        except TimeoutError:
            raise NoAnswer(f"no whole answer within {SECONDS:g} s") from None
        except (httpx.HTTPError, Blocked, Unknown) as error:
            if (reason := certificate_problem(error)) is not None:
                raise Untrusted(f"the certificate of {self.url}: {reason}. {REMEDY}") from error
            raise NoAnswer(f"{type(error).__name__}: {error}") from error
        if response.status_code >= REPEATABLE and not content.startswith(b'{"jsonrpc"'):
            raise NoAnswer(f"HTTP status {response.status_code}")
        return content

    def _client(self) -> httpx.AsyncClient:
        """Return the client of the running loop, whose connections are used again."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            self._clients[loop] = guarded_http()
        return self._clients[loop]


def certificate_problem(error: BaseException | None) -> str | None:
    """Return why the certificate of a server is refused; None if an error has another cause."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return str(error.verify_message)
        error = error.__cause__ or error.__context__
    return None
