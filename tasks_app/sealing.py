"""Encryption of stored secrets that must be read again, so that a copy of the database alone reveals none of them."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from functools import cache
from typing import Protocol

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

_PURPOSES = (b"taskdesk: webhooks with sealed addresses", b"taskdesk: secrets of webhooks")
"""Purposes, each with a key of its own. The first one seals; a text sealed for any of them can be unsealed.

A process of the version that stored addresses in clear does not know the first purpose. It finds a sealed secret
unreadable and tries the delivery again later; otherwise it would send to the part of the address that it can see."""


class Unreadable(Exception):
    """Raised for a text that was sealed under a key that is not among SECRET_KEY and SECRET_KEY_FALLBACKS."""


def seal(text: str) -> str:
    """Encrypt a text for storage."""
    return _fernet().encrypt(text.encode()).decode()


def unseal(sealed: str) -> str:
    """Decrypt a sealed text. Raises Unreadable."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def is_readable(sealed: str) -> bool:
    """Return whether a sealed text can be decrypted."""
    try:
        unseal(sealed)
    except Unreadable:
        return False
    return True


class Addressed(Protocol):
    """The address columns of a webhook."""

    @property
    def url(self) -> str: ...

    @property
    def address(self) -> str | None: ...


def url_of(webhook: Addressed) -> str:
    """Return the whole address of a webhook. Raises Unreadable.

    A process of the version before writes a new address into `url` and leaves the sealed one as it was. So the sealed
    address counts only if `url` is its site.
    """
    if webhook.address:
        url = unseal(webhook.address)
        if site_of(url) == webhook.url:
            return url
    return webhook.url


def has_same_url(one: Addressed, other: Addressed) -> bool:
    """Return whether two webhooks have the same address. An unreadable address equals no other."""
    try:
        return url_of(one) == url_of(other)
    except Unreadable:
        return False


def site_of(url: str) -> str:
    """Return the scheme, host and port of an address, which are not secret."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0]}/"


def _fernet() -> MultiFernet:
    return _of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@cache
def _of(keys: tuple[str, ...]) -> MultiFernet:
    """Return the cipher: its first key seals, and all keys unseal. Each purpose has keys derived from each secret."""
    digests = [hmac.digest(key.encode(), purpose, hashlib.sha256) for purpose in _PURPOSES for key in keys]
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
