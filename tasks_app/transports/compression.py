"""Compression of large answers with gzip (RFC 9110, 8.4.1.3) for callers who take it; streams and cards are sent plain.

It gives no secret away (BREACH): no page of an attacker can make a client repeat a call, since keys are in headers and
no cookie is looked at, and answers hold no lasting secret.
"""

import zlib
from collections.abc import Sequence

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

from tasks_app.callers.accounts import Holding
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.http import LargeResponse

LEAST = 8_192
"""Bytes of an answer that is worth it."""
LEVEL = 4
"""A seventh of the size of JSON in half of the time that the usual level 6 takes."""
_CODINGS = {"gzip", "x-gzip"}
_NEVER = {"q=0", "q=0.0", "q=0.00", "q=0.000"}
_WITH_HEADER = 16 + zlib.MAX_WBITS
"""The number by which zlib writes the header of gzip."""


def _gzip(parts: Sequence[bytes]) -> bytes:
    packer = zlib.compressobj(LEVEL, wbits=_WITH_HEADER)
    return b"".join([*map(packer.compress, parts), packer.flush()])


def takes_gzip(request: HttpRequest) -> bool:
    """Return whether Accept-Encoding names gzip, and not to refuse it."""
    for item in request.META.get("HTTP_ACCEPT_ENCODING", "").lower().split(","):
        coding, _, weight = item.partition(";")
        if coding.strip() in _CODINGS:
            return weight.strip() not in _NEVER
    return False


async def compressed(
    request: HttpRequest, response: HttpResponseBase, weighed: Holding | None = None
) -> HttpResponseBase:
    """Return the response, its body compressed if it is large and the caller takes that; its place in the account
    shrinks with it."""
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
        if weighed:
            weighed.shrink(len(response.content))
    return response
