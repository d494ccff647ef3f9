"""Server-sent events: how an event is framed, and where a client left off (WHATWG HTML, 9.2)."""

RETRY = b"retry: 2000\n"
"""Before the first event: a client that lost its stream asks again after two seconds."""
PING = b": ping\n"
"""A comment: keeps proxies from closing a quiet stream. No blank line, which some clients take for an event."""
REVOKED = b": the key of this stream is not valid any more\n"
DRAINING = b": the server is going down, come back with Last-Event-ID\n"


def frame(data: bytes, seq: int | None = None) -> bytes:
    """One event. The data must be on a single line, which JSON from orjson is."""
    head = b"" if seq is None else b"id: %d\n" % seq
    return head + b"data: " + data + b"\n\n"


def last_seen(header: str | None) -> int | None:
    """The sequence number of a Last-Event-ID header; None if there is none or it is not ours."""
    if header is None or not header.isascii() or not header.isdigit() or len(header) > 18:
        return None
    return int(header)
