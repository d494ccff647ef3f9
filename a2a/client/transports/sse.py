"""Streams of server-sent events, which JSON-RPC and REST share: the headers that request one, and its frames."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from httpx_sse import ServerSentEvent

from a2a.client.bodies import check_use
from a2a.client.http import EVENT_STREAM, Answer
from a2a.client.transports import Frame

LONGEST_ID = 1_000
"""Characters of an event's id, which resumption sends in a header."""
_LARGEST = 10**12
"""The largest number of milliseconds that is told from a larger one, which may be too large for a division."""


def stream_headers(after: str | None) -> dict[str, str]:
    """Return the headers that request a stream of the events after that id."""
    headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
    return headers | ({"Last-Event-ID": after} if after else {})


async def frames(
    events: AsyncIterator[ServerSentEvent], media: str, result: Callable[[Answer], Any]
) -> AsyncIterator[Frame]:
    """Yield the frames of a stream, each of whose events is a whole answer. `result` reads an answer."""
    empty = 0
    async for event in events:
        # A blank line after an id or a comment alone is no event.
        empty = 0 if event.data else empty + 1
        if event.data:
            value = result(Answer(200, media, event.data.encode(), None))
            yield _frame(event, value)
        else:
            check_use(empty, "events in a row have no data")


def _frame(event: ServerSentEvent, value: Any) -> Frame:
    """Return the frame of an event. An id that no header can carry counts as none."""
    text = event.id
    usable = 0 < len(text) <= LONGEST_ID and text.isascii() and text.isprintable() and text == text.strip()
    retry = None if event.retry is None else min(event.retry, _LARGEST) / 1000
    return Frame(text if usable else None, value, retry)
