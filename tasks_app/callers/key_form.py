"""The form of API keys that this server makes: a prefix, a secret and a checksum.

Programs that look for leaked secrets tell by the prefix and the checksum that a text is such a key. Keys without a
checksum, from before or chosen by an operator, are as good.
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
