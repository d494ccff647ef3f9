"""The bytes of answers: decompressed piece by piece, and limited in size."""

import zlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import cast

import httpx

from a2a.client.errors import InvalidResponse

OFFERED = "gzip"
"""The compression that the client accepts."""
_PIECE = 65_536
"""Bytes that are decompressed at once. A kilobyte may stand for a gigabyte, so limits act after each piece."""
_GZIP = 31
"""The window bits by which zlib reads the format gzip."""
_BLANK_LINES = (b"\n\n", b"\r\n\r\n", b"\r\r")
"""The bytes that end an event."""


async def decompressed(chunks: AsyncIterable[bytes], headers: httpx.Headers, place: str) -> AsyncIterator[bytes]:
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


async def limited(chunks: AsyncIterable[bytes], largest: int, place: str) -> AsyncIterator[bytes]:
    """Yield the bytes of a stream of events. Raises InvalidResponse if one event is too large."""
    size, last = 0, b""
    async for chunk in chunks:
        size += len(chunk)
        ends = [at + len(blank) for blank in _BLANK_LINES if (at := (last + chunk).rfind(blank)) >= 0]
        if ends:
            size = len(last) + len(chunk) - max(ends)
        last = chunk[-3:]
        if size > largest:
            raise InvalidResponse(f"one event has more than {largest} bytes", where=place)
        yield chunk


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
