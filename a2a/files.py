"""Files that are stored apart from their task: how a part refers to one, and how references become links in answers.

A reference holds a secret; the id of the file, which links show, is its digest. So whoever has a link cannot make a
reference of it, and a reference in a text or in somebody's data leads nowhere unless it is known.
"""

import hashlib
import re
from collections.abc import Callable
from urllib.parse import quote

from a2a.types import Part

SCHEME = "taskdesk-file:"
MARK = SCHEME.encode()
MAX_NAME = 100
"""Characters of a file's name that are kept."""
MAX_TYPE = 255
"""Characters of a media type that are kept."""
BYTES = "application/octet-stream"
ID = r"[0-9]{8}-[0-9a-f]{32}"
"""What ids look like: the day, which says where the bytes are, and the digest."""

_REFERENCE = re.compile(rf"{SCHEME}({ID})/([A-Za-z0-9%._~-]*)")
# Between quotes that are not escaped this is a member of ours or of the caller's data, never a piece of a text.
_IN_JSON = re.compile(rf'"(url|uri|fileWithUri)":"{SCHEME}({ID})/([A-Za-z0-9%._~-]*)"'.encode())
_TOKEN = r"[A-Za-z0-9!#$&^_.+-]{1,100}"  # noqa: S105  # RFC 9110's word
_TYPE = re.compile(rf"{_TOKEN}/{_TOKEN}(?:; ?[a-z-]{{1,20}}=[A-Za-z0-9._-]{{1,100}})?")


def reference(day: str, secret: str, name: str) -> str:
    """The URL of a stored part; the day is YYYYMMDD, the secret 32 hexadecimal digits."""
    return f"{SCHEME}{day}-{secret}/{quote(name, safe='')}"


def id_of(url: str) -> str:
    """The id of the file. Raises ValueError for what is no reference."""
    found = _REFERENCE.fullmatch(url)
    if found is None:
        raise ValueError("no reference to a stored file")
    return _id(found[1])


def _id(key: str) -> str:
    return f"{key[:8]}-{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def is_stored(part: Part) -> bool:
    return part.url is not None and _REFERENCE.fullmatch(part.url) is not None


def linked(payload: bytes, link: Callable[[str, str], str]) -> bytes:
    """JSON whose references are links, as `link` makes them of an id and a quoted name."""

    def replaced(found: re.Match[bytes]) -> bytes:
        member, key, name = (group.decode() for group in found.groups())
        return f'"{member}":"{link(_id(key), name)}"'.encode()

    return _IN_JSON.sub(replaced, payload) if MARK in payload else payload


def safe_name(name: str | None) -> str:
    """The last piece of a name, without what a file system or a header could stumble over."""
    last = re.split(r"[/\\]", name or "")[-1]
    # Half a character, which JSON does not carry, cannot be quoted.
    kept = "".join(letter for letter in last if letter.isprintable() and letter not in '"<>|:*?')
    return kept.encode(errors="ignore").decode().strip(". ")[:MAX_NAME] or "file"


def safe_type(media_type: str | None) -> str:
    """The media type if it may stand in a header, else that of any bytes."""
    return media_type if media_type and len(media_type) <= MAX_TYPE and _TYPE.fullmatch(media_type) else BYTES
