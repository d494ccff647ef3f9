"""Compression of large answers with gzip (RFC 9110, 8.4.1.3) for callers that accept it. Streams and cards are sent
plain.

It reveals no secret (BREACH). No page of an attacker can make a client repeat a call, because keys are in headers, and
a session cookie counts only in requests from pages of this server. See docs/decisions/compression.md.
"""

import zlib
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

from tasks_app.limits.accounts import Holding
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.http import LargeResponse

LEAST = 8_192
"""The smallest answer that is compressed."""
LEVEL = 4
"""The level of compression. It makes a seventh of JSON, in half of the time of the default level, which is 6."""
_CODINGS = {"gzip", "x-gzip"}
_NEVER = {"q=0", "q=0.0", "q=0.00", "q=0.000"}
_GZIP = 16 + zlib.MAX_WBITS
"""The number that makes zlib write gzip."""


def _gzip(parts: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=_GZIP)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def takes_gzip(request: HttpRequest) -> bool:
    """Return whether Accept-Encoding names gzip with a weight above zero."""
    for item in request.META.get("HTTP_ACCEPT_ENCODING", "").lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() in _CODINGS:
            return weight.strip() not in _NEVER
    return False


async def compress(
    request: HttpRequest, response: HttpResponseBase, holding: Holding | None = None
) -> HttpResponseBase:
    """Return the response, with its body compressed if it is large and the caller accepts gzip.

    The bytes in the account shrink with it.
    """
    if not isinstance(response, HttpResponse):
        return response
    parts = response.parts if isinstance(response, LargeResponse) else (response.content,)
    size = sum(map(len, parts))
    if size < LEAST:
        return response
    patch_vary_headers(response, ["Accept-Encoding"])
    if takes_gzip(request):
        response.content = await off_loop(_gzip, parts) if size > LARGE else _gzip(parts)
        response["Content-Encoding"] = "gzip"
        if holding:
            holding.measure(len(response.content))
    return response
