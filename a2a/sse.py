"""Server-sent events: frames, comments and the resume header (WHATWG HTML, 9.2)."""

RETRY = b"retry: 2000\n"
"""Sent before the first event: a client reconnects two seconds after losing its stream."""
PING = b": ping\n"
"""A comment that keeps proxies from closing a quiet stream. Some clients take a blank line for an event, so it has
none."""
REVOKED = b": the key of this stream is not valid any more\n"
TOO_LONG = b": this stream has been open for as long as one may be, come back with Last-Event-ID\n"
DRAINING = b": the server is going down, come back with Last-Event-ID\n"


_SEPARATORS = ((b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"), (b"\xc2\x85", rb"\u0085"))
"""Characters in UTF-8 at which Unicode ends a line, and their escapes in JSON."""


def frame(data: bytes, seq: int | None = None) -> bytes:
    """Return one event. The data must be JSON on a single line, as orjson writes it.

    An event stream ends its lines at CR and LF alone, but readers that split text by the rules of Unicode, such as
    httpx's, end them at three more characters. In JSON these stand in strings only, where an escape means the same.
    """
    if not data.isascii() and (b"\xe2\x80" in data or b"\xc2\x85" in data):
        for character, escape in _SEPARATORS:
            data = data.replace(character, escape)
    head = b"" if seq is None else b"id: %d\n" % seq
    return head + b"data: " + data + b"\n\n"


def last_seen(header: str | None) -> int | None:
    """Return the sequence number of a Last-Event-ID header; None for no header or a foreign value."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 18:
        return None
    return int(header)
