"""Where this server is reached: absolute addresses for cards, and which of them are ours beyond doubt."""

import re
from functools import lru_cache
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.request import split_domain_port, validate_host

LOOPBACK = ("127.0.0.1", "localhost", "::1")
"""Values of HOST that only this machine reaches."""
MAX_HOST = 255
_URL = re.compile(r"[!#-;=?-\[\]_a-z~]+")
"""Characters that RFC 3986 allows."""
_PAIR = re.compile(r'([A-Za-z]+)=(?:"([^"\\,;]*)"|([^\s",;]*))')


def address_of(request: HttpRequest) -> str:
    """The address of the server as it was asked, without a slash at the end; empty if that is no name of ours."""
    if settings.A2A_PUBLIC_URL:
        return str(settings.A2A_PUBLIC_URL)
    scheme, host = _asked(request)
    address = f"{scheme}://{host}"
    if address in own() or _allowed(host):
        return address
    return ""


def listening() -> str:
    """Where this process listens."""
    host = f"[{settings.HOST}]" if ":" in settings.HOST else settings.HOST
    return f"http://{host}:{settings.PORT}"


def public() -> str:
    """Return the base URL used where no request supplies one: the public one, or where this process listens."""
    return str(settings.A2A_PUBLIC_URL) or listening()


def own() -> frozenset[str]:
    """The addresses that no header can make up: the public one, or else the names in ALLOWED_HOSTS that are no
    patterns, at the usual port or the one that is listened on. Cards are signed for these alone."""
    return _own(settings.A2A_PUBLIC_URL, tuple(settings.ALLOWED_HOSTS), settings.PORT)


def varying() -> str:
    """The headers that the address depends on, for Vary; the Host is part of every URL."""
    if settings.A2A_PUBLIC_URL:
        return ""
    return {"": "", "x-forwarded": "X-Forwarded-Host, X-Forwarded-Proto", "forwarded": "Forwarded"}[
        settings.A2A_TRUST_FORWARDED
    ]


def is_absolute(url: str) -> bool:
    """Whether it is http or https, with a host, no user, and nothing that a URL cannot hold."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return known and "@" not in parts.netloc and _URL.fullmatch(url) is not None


@lru_cache(maxsize=8)
def _own(public: str, names: tuple[str, ...], port: int) -> frozenset[str]:
    if public:
        return frozenset({public})
    exact = [name.lower() for name in names if name != "*" and not name.startswith(".")]
    return frozenset(
        f"{scheme}://{name}{end}" for scheme in ("http", "https") for name in exact for end in ("", f":{port}")
    )


def _allowed(host: str) -> bool:
    name, port = split_domain_port(host) if len(host) <= MAX_HOST else ("", "")
    return bool(name) and validate_host(name, settings.ALLOWED_HOSTS) and (not port or 0 < int(port) < 65_536)


def _asked(request: HttpRequest) -> tuple[str, str]:
    """The scheme and host by the trusted headers, as far as they say something, else by the request itself."""
    scheme, host = request.scheme or "http", request.META.get("HTTP_HOST") or _listening(request)
    match settings.A2A_TRUST_FORWARDED:
        case "x-forwarded":
            said = {
                "proto": _last(request.META.get("HTTP_X_FORWARDED_PROTO", "")),
                "host": _last(request.META.get("HTTP_X_FORWARDED_HOST", "")),
            }
        case "forwarded":
            pairs = _PAIR.finditer(_last(request.META.get("HTTP_FORWARDED", "")))
            said = {pair[1].lower(): pair[2] or pair[3] or "" for pair in pairs}
        case _:
            said = {}
    proto = said.get("proto", "").lower()
    return proto if proto in {"http", "https"} else scheme, (said.get("host") or host).lower()


def _listening(request: HttpRequest) -> str:
    """For clients so old that they send no Host."""
    name, port = request.META["SERVER_NAME"], request.get_port()
    return name if port in {"80", "443"} else f"{name}:{port}"


def _last(header: str) -> str:
    """Return the value of the nearest proxy: everything before it may be the caller's invention."""
    return header.rpartition(",")[2].strip()
