"""The bytes of answers: decompressed piece by piece, and limited in size and in JSON values."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from typing import cast

import httpx

from a2a.client.errors import InvalidResponse
from a2a.client.room import Part
from a2a.envelopes.body import count_values

OFFERED = "gzip"
"""The compression that the client accepts."""
_PIECE = 65_536
"""Bytes that are decompressed at once. A kilobyte may stand for a gigabyte, so limits act after each piece."""
_GZIP = 31
"""The window bits by which zlib reads the format gzip."""
MOST_VALUES = 500_000
"""JSON values in an answer, or in one event of a stream. A few kilobytes of compressed brackets would otherwise become
gigabytes of objects, and the parser lets no other thread of the process run until all of them are there."""
MOST_QUIET = 10_000_000
"""Bytes of a stream without an event: comments and blank lines, which keep a connection alive. One each second needs
days for as many; a flood of them, which no limit of time ends, would keep the process busy."""
MOST_USELESS = 100_000
"""Events or frames in a row that change nothing: without data, repeated, or for no call. A flood of them would keep the
process busy without an end."""
STALE = "events in a row bring nothing new"
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
"""The bytes that end an event."""
_OVERLAP = 5
"""Bytes of a piece that are searched again with the next one: a mark may be cut in two."""


def check_use(useless: int, words: str, where: str = "") -> None:
    """Raise InvalidResponse, with these words, after too many events or frames in a row that change nothing."""
    if useless > MOST_USELESS:
        raise InvalidResponse(f"more than {MOST_USELESS} {words}", where=where)


async def decompressed(chunks: AsyncIterable[bytes], headers: httpx.Headers, place: str) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a body as the headers say. Raises InvalidResponse."""
    coding = headers.get("content-encoding", "").strip().lower()
    if coding in ("", "identity"):
        async for chunk in chunks:
            yield chunk
    elif coding == OFFERED:
        inflater = zlib.decompressobj(_GZIP)
        async for chunk in chunks:
            piece = _inflate(inflater, chunk, place)
            while piece:
                yield piece
                piece = _inflate(inflater, inflater.unconsumed_tail, place)
    else:
        # Also several layers of gzip, of which each multiplies the size by a thousand.
        raise InvalidResponse(f"the answer is compressed by {coding[:40]}, which was not offered", where=place)


def _inflate(inflater: "zlib._Decompress", chunk: bytes, place: str) -> bytes:
    try:
        return inflater.decompress(chunk, _PIECE)
    except zlib.error as error:
        raise InvalidResponse(f"the answer is not compressed as its header says: {error}", where=place) from None


async def limited(chunks: AsyncIterable[bytes], largest: int, part: Part) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a stream of events. Raises InvalidResponse if one event is too large, or if none comes, and
    NoRoom if there is no room for an event that is still arriving."""
    size, quiet, has_data, last, place = 0, 0, False, b"\n", part.place
    async for chunk in chunks:
        size += len(chunk)
        text = last + chunk
        has_data = has_data or _has_data(text)
        quiet = 0 if has_data else quiet + len(chunk)
        ends = [at + len(blank) for blank in _BLANK_LINES if (at := text.rfind(blank)) >= 0]
        if ends:
            size = len(text) - max(ends)
            has_data = _has_data(text[max(ends) - 1 :])
        last = text[-_OVERLAP:]
        if size > largest:
            raise InvalidResponse(f"one event has more than {largest} bytes", where=place)
        if quiet > MOST_QUIET:
            raise InvalidResponse(f"the stream has more than {MOST_QUIET} bytes without an event", where=place)
        part.hold(size)
        yield chunk


def _has_data(text: bytes) -> bool:
    """Return whether an event with data begins in a piece of a stream."""
    return b"\ndata:" in text or b"\rdata:" in text


def check_values(body: str | bytes, place: str) -> None:
    """Raise InvalidResponse if the JSON of an answer has too many values to be parsed."""
    if len(body) <= MOST_VALUES:
        return  # Each value has a character at least, and most texts are short: they are not encoded for the count.
    if count_values(body.encode() if isinstance(body, str) else body, MOST_VALUES) > MOST_VALUES:
        raise InvalidResponse(f"the answer has more than {MOST_VALUES} JSON values", where=place)


def raw(response: httpx.Response) -> httpx.AsyncByteStream:
    """Return the bytes of a response as they came. Unlike `aiter_raw`, this works for a response that a test made."""
    return cast("httpx.AsyncByteStream", response.stream)


class Bytes(httpx.AsyncByteStream):
    """A body whose bytes come from an iterator, over the connection of another body."""

    def __init__(self, chunks: AsyncIterator[bytes], source: httpx.AsyncByteStream) -> None:
        self._chunks = chunks
        self._source = source

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._chunks

    async def aclose(self) -> None:
        await self._source.aclose()
