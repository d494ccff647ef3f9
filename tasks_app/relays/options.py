"""The items of A2A_RELAYS."""

from django.conf import settings
from msgspec import Struct

TIMEOUT = 3600.0
ATTEMPTS = 10


class RelayOptions(Struct, frozen=True, kw_only=True):
    """One item of A2A_RELAYS."""

    name: str
    url: str
    timeout: float = TIMEOUT
    attempts: int = ATTEMPTS
    resend: bool = True
    """True to send a message that may have arrived again, under the same message id."""


def relays() -> tuple[RelayOptions, ...]:
    """Return the relays of the settings."""
    return tuple(RelayOptions(name=name, **options) for name, options in settings.A2A_RELAYS.items())
