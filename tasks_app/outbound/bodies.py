"""The bodies of answers: decompressed piece by piece, so that a few bytes never become gigabytes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

import httpx

from a2a.client.bodies import decompressed
from a2a.client.errors import InvalidResponse

UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""The header that asks for no compression. Some servers of files send what they have stored all the same."""


class TooLarge(httpx.DecodingError):
    """Raised for a body of more bytes than are read."""


async def pieces_of(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the bytes of a streamed answer, decompressed as our client does it. Raises httpx.HTTPError.

    httpx itself would decompress each piece of the network at once, and several layers of compression, of which each
    multiplies the size by a thousand.
    """
    try:
        async with (
            aclosing(response.aiter_raw()) as raw,  # type: ignore[type-var]  # it is a generator
            aclosing(decompressed(raw, response.headers, "")) as pieces,
        ):
            async for piece in pieces:
                yield piece
    except InvalidResponse as error:
        raise httpx.DecodingError(str(error)) from None


async def read_body(response: httpx.Response, most: int) -> bytes:
    """Return the body of a streamed answer. Raises TooLarge above so many bytes, and other errors of httpx."""
    body = bytearray()
    async with aclosing(pieces_of(response)) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > most:
                raise TooLarge(f"the answer has more than {most} bytes")
    return bytes(body)
