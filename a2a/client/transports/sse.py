"""Streams of server-sent events, which JSON-RPC and REST share: the headers that request one, and its frames."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from httpx_sse import ServerSentEvent

from a2a.client.http import EVENT_STREAM, Answer
from a2a.client.transports import Frame


def stream_headers(after: str | None) -> dict[str, str]:
    """Return the headers that request a stream of the events after that id."""
    headers = {"Accept": EVENT_STREAM, "Cache-Control": "no-store"}
    return headers | ({"Last-Event-ID": after} if after else {})


async def frames(
    events: AsyncIterator[ServerSentEvent], media: str, result: Callable[[Answer], Any]
) -> AsyncIterator[Frame]:
    """Yield the frames of a stream, each of whose events is a whole answer. `result` reads an answer."""
    async for event in events:
        # A blank line after an id or a comment alone is no event.
        if event.data:
            value = result(Answer(200, media, event.data.encode(), None))
            yield Frame(event.id or None, value, event.retry and event.retry / 1000)
