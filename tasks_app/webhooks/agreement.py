"""Which receivers must agree to deliveries, and the names that the two sides have in a handshake (handshake.py)."""

from urllib.parse import urlsplit

from django.conf import settings

from tasks_app.cards.addresses import public
from tasks_app.outbound import policy

REQUEST_ORIGIN, ALLOWED_ORIGIN = "WebHook-Request-Origin", "WebHook-Allowed-Origin"
"""The headers of a request, with the name of this server, and of an answer that agrees."""


def is_needed(host: str) -> bool:
    """Return whether a receiver with this host must agree before it gets deliveries."""
    if not settings.A2A_WEBHOOK_HANDSHAKE:
        return False
    return not any(policy.is_among(host, each) for each in (settings.A2A_WEBHOOK_HOSTS, settings.A2A_OUTBOUND_HOSTS))


def sender_name() -> str:
    """Return the name by which receivers know this server: the host of its address."""
    if settings.A2A_PUBLIC_URL:
        return urlsplit(settings.A2A_PUBLIC_URL).hostname or ""
    exact = (name for name in settings.ALLOWED_HOSTS if name != "*" and not name.startswith("."))
    return next(exact, urlsplit(public()).hostname or "")


def site_of(url: str, target: policy.Target) -> str:
    """Return the scheme, host and port of an address, in one spelling."""
    return f"{url.partition(':')[0].lower()}://{target.host}:{target.port}"
