"""The form of API keys that this server makes: a prefix, a secret and a checksum.

Programs that look for leaked secrets recognise such a key by its prefix and its checksum. Keys without a checksum, made
by an earlier version or chosen by an operator, are valid too.
"""

import secrets
import string
import zlib

PREFIX = "tdk_"
_DIGITS = string.digits + string.ascii_uppercase + string.ascii_lowercase
CHECK_LENGTH = 6


def random_key() -> str:
    """Return a new key of 256 random bits."""
    secret = secrets.token_urlsafe(32)
    return f"{PREFIX}{secret}{checksum(secret)}"


def checksum(secret: str) -> str:
    """Return the CRC-32 of a secret in base 62, with the digits 0-9, A-Z and a-z, and 6 of them."""
    rest, text = zlib.crc32(secret.encode()), ""
    for _ in range(CHECK_LENGTH):
        rest, digit = divmod(rest, len(_DIGITS))
        text = _DIGITS[digit] + text
    return text
