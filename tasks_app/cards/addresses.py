"""The addresses of this server for cards and links, and which of them a caller cannot have made up."""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

from tasks_app.callers.peers import may_forward

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Values of HOST that only this machine reaches."""
MAX_HOST = 255
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""The characters that a URL may have (RFC 3986, 2)."""
# A name begins at its first letter: a search from each letter of a long word takes the square of its length.
_PAIR = re.compile(r'(?<![A-Za-z])([A-Za-z]++)=(?:"([^"\\,;]*)"|([^\s",;]*))')


def address_of(request: HttpRequest) -> str:
    """Return the address to which the request was sent, without a slash at the end; empty if it is not ours."""
    if settings.A2A_PUBLIC_URL:
        return str(settings.A2A_PUBLIC_URL)
    scheme, host = _read_host(request)
    address = f"{scheme}://{host}"
    if address in own() or _is_allowed(host):
        return address
    return ""


def is_secure(request: HttpRequest) -> bool:
    """Return whether the request came over TLS: to this server, or to a proxy whose headers are trusted."""
    return _read_host(request)[0] == "https"


def listening() -> str:
    """Return the address at which this process listens."""
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    return f"http://{host}:{settings.PORT}"


def public() -> str:
    """Return the base URL where no request supplies one, as for links in webhooks."""
    return str(settings.A2A_PUBLIC_URL) or listening()


def own() -> frozenset[str]:
    """Return the addresses that no caller can make up by a header. Cards are signed for these alone.

    They are the public URL, or else the full names in ALLOWED_HOSTS, at the default port and at PORT.
    """
    return _own(settings.A2A_PUBLIC_URL, tuple(settings.ALLOWED_HOSTS), settings.PORT)


def varying() -> str:
    """Return the value of Vary: the headers that the address depends on. Caches always know the Host."""
    if settings.A2A_PUBLIC_URL:
        return ""
    return {"": "", "x-forwarded": "X-Forwarded-Host, X-Forwarded-Proto", "forwarded": "Forwarded"}[
        settings.A2A_TRUST_FORWARDED
    ]


def is_absolute(url: str) -> bool:
    """Return whether this is an http or https URL with a host, without a user, of legal characters only."""
    try:
        parts = urlsplit(url)
        has_host = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return has_host and "@" not in parts.netloc and _URL.fullmatch(url) is not None


@lru_cache(maxsize=8)
def _own(public: str, names: tuple[str, ...], port: int) -> frozenset[str]:
    if public:
        return frozenset({public})
    exact = [name.lower() for name in names if name != "*" and not name.startswith(".")]
    return frozenset(
        f"{scheme}://{name}{end}" for scheme in ("http", "https") for name in exact for end in ("", f":{port}")
    )


def _is_allowed(host: str) -> bool:
    name, port = split_domain_port(host) if len(host) <= MAX_HOST else ("", "")
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS) and (not port or 0 < int(port) < 65_536)


def _read_host(request: HttpRequest) -> tuple[str, str]:
    """Return the scheme and host of a request: from trusted headers of a proxy if present, else from the request."""
    # The scheme of the connection: the property `scheme` would be that of X-Forwarded-Proto, of whatever peer.
    scheme: str = request._get_scheme()  # type: ignore[attr-defined]  # django-stubs do not have it
    host = request.META.get("HTTP_HOST") or _own_host(request)
    match settings.A2A_TRUST_FORWARDED if may_forward(request.META) else "":
        case "x-forwarded":
            forwarded = {
                "proto": _last(request.META.get("HTTP_X_FORWARDED_PROTO", "")),
                "host": _last(request.META.get("HTTP_X_FORWARDED_HOST", "")),
            }
        case "forwarded":
            pairs = _PAIR.finditer(_last(request.META.get("HTTP_FORWARDED", "")))
            forwarded = {pair[1].lower(): pair[2] or pair[3] or "" for pair in pairs}
        case _:
            forwarded = {}
    proto = forwarded.get("proto", "").lower()
    return proto if proto in {"http", "https"} else scheme, (forwarded.get("host") or host).lower()


def _own_host(request: HttpRequest) -> str:
    """Return the host of this server, for requests of HTTP/1.0 without a Host header."""
    name, port = request.META["SERVER_NAME"], request.get_port()
    return name if port in {"80", "443"} else f"{name}:{port}"


def _last(header: str) -> str:
    """Return the last value of a header, which the nearest proxy added. A caller may have made up the others."""
    return header.rpartition(",")[2].strip()
