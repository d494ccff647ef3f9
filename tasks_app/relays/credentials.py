"""The credentials of the relays, as they are sealed in their rows."""

from typing import Literal

import msgspec
from msgspec import Struct

from tasks_app.sealing import seal, unseal

LONGEST_SCOPES = 1_000
"""Characters of the scopes for a token endpoint, with the spaces between them."""


class StoredCredentials(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The credentials of one relay."""

    kind: Literal["bearer", "header", "oauth"]
    secret: str
    header: str = ""
    token_url: str = ""
    client_id: str = ""
    scopes: tuple[str, ...] = ()

    def sealed(self) -> str:
        """Return the form that is stored."""
        return seal(msgspec.json.encode(self).decode())


def open_credentials(sealed: str) -> StoredCredentials:
    """Return credentials from their stored form. Raises Unreadable."""
    return msgspec.json.decode(unseal(sealed), type=StoredCredentials)
