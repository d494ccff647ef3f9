"""References to files that are stored apart from their task, and the links that replace them in answers.

A reference contains a secret. The id of the file, which links show, is the digest of that secret. So a link cannot be
turned into a reference, and an invented reference matches no file.
"""

import hashlib
import re
from collections.abc import Callable
from urllib.parse import quote

from a2a.types import Part

SCHEME = "taskdesk-file:"
"""The URL scheme of references."""
MARK = SCHEME.encode()
"""The bytes that JSON with a reference contains."""
MAX_NAME = 100
"""Characters of a file name, at most."""
MAX_TYPE = 255
"""Characters of a media type, at most."""
BYTES = "application/octet-stream"
ID = r"[0-9]{8}-[0-9a-f]{32}"
"""The pattern of an id: the day, which is the folder of the bytes, and the digest."""

_REFERENCE = re.compile(rf"{SCHEME}({ID})/([A-Za-z0-9%._~-]*)")
# A text inside JSON has escaped quotes, so unescaped quotes mark a member of the JSON itself.
_IN_JSON = re.compile(rf'"(url|uri|fileWithUri)":"{SCHEME}({ID})/([A-Za-z0-9%._~-]*)"'.encode())
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]{1,100}"  # noqa: S105  # RFC 9110's word
_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:; ?[a-z-]{{1,20}}=[A-Za-z0-9._-]{{1,100}})?")


def reference(day: str, secret: str, name: str) -> str:
    """Return the URL of a stored part. The day is YYYYMMDD, the secret 32 hexadecimal digits."""
    return f"{SCHEME}{day}-{secret}/{quote(name, safe='')}"


def id_of(url: str) -> str:
    """Return the id of the file. Raises ValueError if the URL is not a reference."""
    match = _REFERENCE.fullmatch(url)
    if match is None:
        raise ValueError("no reference to a stored file")
    return _id(match[1])


def _id(key: str) -> str:
    return f"{key[:8]}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def is_stored(part: Part) -> bool:
    """Return whether the part refers to a stored file."""
    return part.url is not None and _REFERENCE.fullmatch(part.url) is not None


def insert_links(payload: bytes, link: Callable[[str, str], str]) -> bytes:
    """Replace the references in JSON by links. `link` builds a link from an id and a quoted name."""

    def insert_link(match: re.Match[bytes]) -> bytes:
        member, key, name = (group.decode() for group in match.groups())
        return f'"{member}":"{link(_id(key), name)}"'.encode()

    return _IN_JSON.sub(insert_link, payload) if MARK in payload else payload


def safe_name(name: str | None) -> str:
    """Return the last segment of a name, without characters that are unsafe in file systems and headers."""
    last = re.split(r"[/\\]", name or "")[-1]
    safe = "".join(letter for letter in last if letter.isprintable() and letter not in '"<>|:*?')
    # Agents may name a file with a lone surrogate, which UTF-8 cannot encode.
    return safe.encode(errors="ignore").decode().strip(". ")[:MAX_NAME] or "file"


def safe_type(media_type: str | None) -> str:
    """Return the media type if it is safe in a header, else application/octet-stream."""
    return media_type if media_type and len(media_type) <= MAX_TYPE and _TYPE.fullmatch(media_type) else BYTES
