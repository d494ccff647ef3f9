"""The kinds of credentials, by the schemes that take them.

What a caller left behind, such as webhooks, links and tickets, refers to its credential, and ends when no scheme that
is on takes that kind of credential any more.
"""

from django.conf import settings

SCHEMES = {
    "key": ("bearer", "key"),
    "oidc": ("oidc",),
    "mtls": ("mtls",),
    "oauth": ("oauth",),
    "token": ("oauth",),
    "user": ("session",),
}
"""The schemes that take the credentials of each kind."""


def is_accepted(kind: str) -> bool:
    """Return whether a scheme that is on takes credentials of a kind."""
    return not set(settings.A2A_SCHEMES).isdisjoint(SCHEMES.get(kind, ()))
