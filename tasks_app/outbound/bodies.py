"""The bodies of answers: decompressed piece by piece, so that a few bytes never become gigabytes."""

import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx

PIECE = 65_536
"""Bytes that are decompressed at once."""
UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""The header that asks for no compression. Some servers of files send what they have stored all the same."""
_GZIP = 31
"""The window bits by which zlib reads the format gzip."""


class TooLarge(httpx.DecodingError):
    """Raised for a body of more bytes than are read."""


async def pieces_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a streamed answer, decompressed. Raises httpx.HTTPError.

    httpx itself would decompress each piece of the network at once, and several layers of compression, of which each
    multiplies the size by a thousand.
    """
    coding = response.headers.get("Content-Encoding", "").strip().lower()
    if coding not in {"", "identity", "gzip"}:
        raise httpx.DecodingError(f"the answer is compressed by {coding[:40]}, which was not asked for")
    inflater = zlib.decompressobj(_GZIP) if coding == "gzip" else None
    async with aclosing(response.aiter_raw()) as pieces:  # type: ignore[type-var]  # it is a generator
        async for piece in pieces:
            if inflater is None:
                yield piece
                continue
            rest = piece
            while rest:
                yield _inflate(inflater, rest)
                rest = inflater.unconsumed_tail


def _inflate(inflater: "zlib._Decompress", piece: bytes) -> bytes:
    try:
        return inflater.decompress(piece, PIECE)
    except zlib.error as error:
        raise httpx.DecodingError(f"the answer is not compressed as its header says: {error}") from None


async def read_body(response: httpx.Response, most: int) -> bytes:
    """Return the body of a streamed answer. Raises TooLarge above so many bytes, and other errors of httpx."""
    body = bytearray()
    async with aclosing(pieces_of(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most:
                raise TooLarge(f"the answer has more than {most} bytes")
    return bytes(body)
