"""The clients of the relays: one for each remote agent and event loop, with bounded connections.

Each call is checked as that of a webhook: outbound/ allows its URL and dials only allowed addresses. WebSocket is not
used, because its library dials by itself.
"""

import asyncio
import time

import httpx
from django.conf import settings

from a2a.client import REST, RPC, ApiKey, Bearer, Client, ClientCredentials, Credentials, Retries
from a2a.client.cards import VERSIONS
from a2a.client.room import Room
from a2a.failures import Failure
from tasks_app.database.outages import persist
from tasks_app.database.work import DoSlowly
from tasks_app.models import Relay
from tasks_app.outbound import dialling, policy
from tasks_app.relays.credentials import StoredCredentials, open_credentials
from tasks_app.relays.options import RelayOptions
from tasks_app.relays.relayed_tasks import WAITER
from tasks_app.sealing import Unreadable

BINDINGS = (RPC, REST)
SECONDS = 30.0
CLIENT_SECONDS = 60.0
"""Seconds after which a client is replaced, so that changes of credentials and of the remote card take effect."""
SPARE = 64
"""Connections to a remote agent beside those of the streams, for cancellations and reads."""


class Remote:
    """A relay on one event loop: its HTTP client, and the client that has the card and the credentials."""

    def __init__(self) -> None:
        self.http = guarded_http()
        self.client: Client | None = None
        self.stored: StoredCredentials | None = None
        self.credentials: Credentials | None = None
        """The stored credentials in use. They outlast the client, because they may have a token that does."""
        self.born = 0.0
        self.opening = asyncio.Lock()
        """Locked while the client is opened. Each client reads the card, so runs that begin together share one."""


_remotes: dict[asyncio.AbstractEventLoop, dict[RelayOptions, Remote]] = {}
"""The relays of each loop. Locks and connections refer to their loop, so weak keys would keep it all the same."""
_rooms: dict[str, Room] = {}


async def client_of(relay: RelayOptions) -> Client:
    """Return the client of a relay for the running loop."""
    remote = _remote_of(relay)
    async with remote.opening:
        if remote.client is None or time.monotonic() - remote.born > CLIENT_SECONDS:
            if (stored := await _stored_credentials_of(relay.name)) != remote.stored:
                remote.stored, remote.credentials = stored, _for_client(stored, remote.http)
            remote.client = open_client(relay, remote.http, remote.credentials)
            remote.born = time.monotonic()
        return remote.client


def _remote_of(relay: RelayOptions) -> Remote:
    loop = asyncio.get_running_loop()
    if loop not in _remotes:
        for ended in [other for other in tuple(_remotes) if other.is_closed()]:
            _remotes.pop(ended, None)  # Another thread may have done so.
        _remotes[loop] = {}
    relays = _remotes[loop]
    if relay not in relays:
        relays[relay] = Remote()
    return relays[relay]


def most_bytes() -> int:
    """Return the most bytes of an answer of a remote agent: twice a whole task, whose files are in base64."""
    most: int = 2 * (settings.A2A_TASK_CHARACTERS + settings.A2A_TASK_FILE_BYTES)
    return most


def guarded_http() -> httpx.AsyncClient:
    """Return an HTTP client whose connections and bytes are bounded, and whose addresses are checked."""
    connections = settings.A2A_ASYNC_SLOTS + SPARE
    http = dialling.client(seconds=SECONDS, connections=connections, most_read=most_bytes())
    http.event_hooks = {"request": [_check]}
    return http


async def _check(request: httpx.Request) -> None:
    """Check the URL of a call: a card may lead to any. Raises Blocked."""
    policy.target(str(request.url))


def open_client(relay: RelayOptions, http: httpx.AsyncClient, credentials: Credentials | None) -> Client:
    """Return a client that uses an HTTP client of the caller's."""
    return Client(
        relay.url,
        credentials=credentials,
        versions=VERSIONS,
        bindings=BINDINGS,
        downgrade=True,
        retries=Retries(resend=relay.resend),
        largest=settings.A2A_TASK_CHARACTERS + 2 * settings.A2A_FILE_BYTES,
        room=room_of(relay.name),
        http=http,
    )


def room_of(relay: str) -> Room:
    """Return the room for unfinished answers of a relay in this process. A remote agent takes that of no other."""
    return _rooms.setdefault(relay, Room(settings.A2A_BODIES_BYTES))


async def credentials_of(relay: str, http: httpx.AsyncClient) -> Credentials | None:
    """Return the credentials of a relay; None if it has none. Raises Failure if they cannot be read."""
    return _for_client(await _stored_credentials_of(relay), http)


async def _stored_credentials_of(relay: str) -> StoredCredentials | None:
    row = await persist(DoSlowly(lambda: Relay.objects.filter(pk=relay).only("credentials").first()), WAITER)
    if row is None or not row.credentials:
        return None
    try:
        return open_credentials(row.credentials)
    except Unreadable:
        raise Failure("The credentials for the remote agent cannot be read: SECRET_KEY was changed.") from None


def _for_client(stored: StoredCredentials | None, http: httpx.AsyncClient) -> Credentials | None:
    if stored is None:
        return None
    match stored.kind:
        case "bearer":
            return Bearer(stored.secret)
        case "header":
            return ApiKey(stored.secret, header=stored.header)
        case "oauth":
            return ClientCredentials(stored.token_url, stored.client_id, stored.secret, scopes=stored.scopes, http=http)
