"""Secrets that must be read again are stored sealed, so that a copy of the database alone is worth nothing."""

import hashlib
import hmac
import re
from base64 import urlsafe_b64encode
from functools import cache
from typing import Protocol

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

_PURPOSES = (b"taskdesk: webhooks with sealed addresses", b"taskdesk: secrets of webhooks")
"""The first seals, all of them open. What is sealed for the first cannot be read by processes of the version that kept
addresses in clear: they try a delivery again later, instead of sending it to the part of the address that they see."""


class Unreadable(Exception):
    """Sealed under a key that is not among SECRET_KEY and SECRET_KEY_FALLBACKS."""


def seal(text: str) -> str:
    """The text as it may be stored."""
    return _fernet().encrypt(text.encode()).decode()


def opened(sealed: str) -> str:
    """The text. Raises Unreadable."""
    try:
        return _fernet().decrypt(sealed.encode()).decode()
    except InvalidToken:
        raise Unreadable from None


def readable(sealed: str) -> bool:
    """Whether it can be opened."""
    try:
        opened(sealed)
    except Unreadable:
        return False
    return True


class Addressed(Protocol):
    """The row of a webhook, or what was read of it."""

    @property
    def url(self) -> str: ...

    @property
    def address(self) -> str | None: ...


def url_of(webhook: Addressed) -> str:
    """Return the whole address of a webhook. Raises Unreadable.

    A process of the version before writes the whole address into `url`, and leaves what is sealed as it was: that
    counts only where `url` is its site.
    """
    if webhook.address:
        url = opened(webhook.address)
        if site_of(url) == webhook.url:
            return url
    return webhook.url


def leads_alike(one: Addressed, other: Addressed) -> bool:
    """Return whether two webhooks have the same address. One that cannot be read is like no other."""
    try:
        return url_of(one) == url_of(other)
    except Unreadable:
        return False


def site_of(url: str) -> str:
    """Return scheme, host and port of an address, which are no secret."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{re.split('[/?#]', rest, maxsplit=1)[0]}/"


def _fernet() -> MultiFernet:
    return _of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@cache
def _of(keys: tuple[str, ...]) -> MultiFernet:
    """The first key seals, all of them open. Each purpose has keys of its own, derived from the one secret."""
    digests = [hmac.digest(key.encode(), purpose, hashlib.sha256) for purpose in _PURPOSES for key in keys]
    return MultiFernet([Fernet(urlsafe_b64encode(digest)) for digest in digests])
