"""Secrets that must be read again are stored sealed, so that a copy of the database alone is worth nothing."""

import hashlib
import hmac
from base64 import urlsafe_b64encode
from functools import cache

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings

_PURPOSE = b"taskdesk: secrets of webhooks"


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


def _fernet() -> MultiFernet:
    return _of((settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS))


@cache
def _of(keys: tuple[str, ...]) -> MultiFernet:
    """The first key seals, all of them open. Each purpose has keys of its own, derived from the one secret."""
    return MultiFernet([Fernet(urlsafe_b64encode(hmac.digest(key.encode(), _PURPOSE, hashlib.sha256))) for key in keys])
