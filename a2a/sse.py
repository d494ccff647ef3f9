"""Server-sent events: frames, comments and the Last-Event-ID header (WHATWG HTML, 9.2)."""

import re

from a2a.errors import InvalidRequest

RETRY = b"retry: 2000\n"
"""The line before the first event. It makes a client reconnect two seconds after losing its stream."""
PING = b": ping\n"
"""A comment that keeps proxies from closing a quiet stream. No blank line follows, since some clients take a blank line
for an event."""
REVOCATION = b": the key of this stream is not valid any more\n"
"""The last comment of a stream whose key was revoked, has expired, or has lost the scope of the stream."""
EXPIRY = b": this link has expired\n"
"""The last comment of a stream whose link has expired."""
TOO_LONG = b": this stream has been open for as long as one may be, come back with Last-Event-ID\n"
"""The last comment of a stream that has reached its time limit."""
DRAINING = b": the server is going down, come back with Last-Event-ID\n"
"""The last comment of a stream whose process is stopping."""

MAX_DIGITS = 18
"""Digits of the longest id of an event. The database has no larger numbers."""
_SEPARATORS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))
"""Line separators of Unicode in UTF-8, each with its escape in JSON."""


def frame(data: bytes, seq: int | None = None) -> bytes:
    """Return one event with its sequence number. The data must be JSON on a single line, as orjson writes it.

    An event stream ends its lines at CR and LF only. Clients that split text by the rules of Unicode, such as httpx,
    also end them at three other characters. JSON has these characters in strings only, so they are escaped.
    """
    if not data.isascii() and (b"\xe2\x80" in data or b"\xc2\x85" in data):
        for character, escape in _SEPARATORS:
            data = data.replace(character, escape)
    head = b"" if seq is None else b"id: %d\n" % seq
    return head + b"data: " + data + b"\n\n"


_LINE_END = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""The ends of lines in Unicode."""


def text_frame(data: bytes, seq: int | None = None) -> bytes:
    """Return one event of bare text with its sequence number. Each line of the text is a line of the event.

    An event stream carries line feeds alone. Clients such as httpx end lines at all line ends of Unicode, and bare text
    cannot escape them, so each becomes a line of its own. Otherwise these clients would lose what follows.
    """
    head = b"" if seq is None else b"id: %d\n" % seq
    lines = _LINE_END.split(data.decode())
    return head + "".join([f"data: {line}\n" for line in lines]).encode() + b"\n"


def last_seen(value: str | None, name: str = "Last-Event-ID") -> int | None:
    """Return the sequence number in a Last-Event-ID header, or in another place of that name. None if it is absent or
    empty: a client that has seen no id sends none, or an empty one.

    Raises InvalidRequest for any other text. A stream from another place would miss events, and not say so.
    """
    if not value:
        return None
    if not value.isascii() or not value.isdigit() or len(value) > MAX_DIGITS:
        raise InvalidRequest(detail=f"{name} must be a whole number, that of the last event you have seen")
    return int(value)
