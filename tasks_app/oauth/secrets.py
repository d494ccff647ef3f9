"""The secrets of clients and the tokens: their random texts, and the digests that are stored in their place."""

import hashlib
import secrets
import uuid
from typing import Any

ACCESS, REFRESH, SECRET = "tda_", "tdr_", "tds_"
"""The prefixes of access tokens, refresh tokens and secrets of clients, by which scanners recognise them."""
BYTES = 32


def make_access_token(request: Any, refresh_token: bool = False) -> str:
    """Return a new access token, as oauthlib asks for it."""
    return ACCESS + secrets.token_urlsafe(BYTES)


def make_refresh_token(request: Any, refresh_token: bool = True) -> str:
    """Return a new refresh token, as oauthlib asks for it."""
    return REFRESH + secrets.token_urlsafe(BYTES)


def make_secret() -> str:
    """Return a new secret of a client."""
    return SECRET + secrets.token_urlsafe(BYTES)


def checksum(token: str) -> str:
    """Return the digest under which a token or a code is stored.

    It has no key: the toolkit computes the same digest of tokens by itself. With 256 random bits a token cannot be
    guessed from it.
    """
    return hashlib.sha256(token.encode()).hexdigest()


def family_of(code: str) -> uuid.UUID:
    """Return the family of all tokens that descend from a code, by the digest of the code.

    The code is deleted at its first use. A second use still finds the family, and revokes it (RFC 6749, 4.1.2).
    """
    return uuid.UUID(hex=code[:32])
