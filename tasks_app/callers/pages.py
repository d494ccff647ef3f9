"""The page of a browser that made a request, as the browser tells it: by Sec-Fetch-Site (Fetch Metadata) and Origin."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings

OWN = frozenset({"same-origin", "none"})
"""The values of Sec-Fetch-Site for our own pages, and for what a user has opened without any page."""


def has_foreign_origin(meta: Mapping[str, Any]) -> bool:
    """Return whether a request with these headers, named as in WSGI, has an Origin that is not ours."""
    origin = meta.get("HTTP_ORIGIN")
    # Behind a proxy the public address tells which origin is ours.
    own = urlsplit(settings.A2A_PUBLIC_URL).netloc or meta.get("HTTP_HOST", "")
    return origin is not None and (not own or _host_in(origin) != own)


def is_of_other_page(meta: Mapping[str, Any]) -> bool:
    """Return whether a page of another origin made a request with these headers. Programs send neither of them."""
    return meta.get("HTTP_SEC_FETCH_SITE", "none") not in OWN or has_foreign_origin(meta)


def _host_in(origin: str) -> str:
    """Return the host and the port in an Origin; empty for one that cannot be read, such as `http://[`."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""
