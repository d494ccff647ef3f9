"""The credentials of the relays: sealed in their rows, and unsealed for the client only."""

from typing import Literal

import httpx
import msgspec
from msgspec import Struct

from a2a.client import ApiKey, Bearer, ClientCredentials, Credentials
from a2a.run import Failure
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.models import Relay
from tasks_app.sealing import Unreadable, seal, unseal


class StoredCredentials(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The credentials of one relay, as they are sealed."""

    kind: Literal["bearer", "header", "oauth"]
    secret: str
    header: str = ""
    token_url: str = ""
    client_id: str = ""
    scopes: tuple[str, ...] = ()

    def sealed(self) -> str:
        """Return the form that is stored."""
        return seal(msgspec.json.encode(self).decode())


def opened(sealed: str) -> StoredCredentials:
    """Return credentials from their stored form. Raises Unreadable."""
    return msgspec.json.decode(unseal(sealed), type=StoredCredentials)


async def credentials_of(relay: str, http: httpx.AsyncClient) -> Credentials | None:
    """Return the credentials of a relay; None if it has none. Raises Failure if they cannot be read."""
    row = await bridge.ask(DoSlowly(lambda: Relay.objects.filter(pk=relay).only("credentials").first()))
    if row is None or not row.credentials:
        return None
    try:
        stored = opened(row.credentials)
    except Unreadable:
        raise Failure("The credentials for the remote agent cannot be read: SECRET_KEY was changed.") from None
    return client_credentials(stored, http)


def client_credentials(stored: StoredCredentials, http: httpx.AsyncClient) -> Credentials:
    """Return the client's form of stored credentials."""
    match stored.kind:
        case "bearer":
            return Bearer(stored.secret)
        case "header":
            return ApiKey(stored.secret, header=stored.header)
        case "oauth":
            return ClientCredentials(stored.token_url, stored.client_id, stored.secret, scopes=stored.scopes, http=http)
