"""The signature of requests from Slack: over the time and the body, with the signing secret of the app.

A request is refused five minutes after it was signed. Within that time the ids of events keep a copy of it from having
any effect.
"""

from collections.abc import Iterable
from typing import Any

from tasks_app import clock

TIMESTAMP, SIGNATURE = "X-Slack-Request-Timestamp", "X-Slack-Signature"


class _Clock:
    """The time of day as slack_sdk reads it."""

    def now(self) -> float:
        return clock.now().timestamp()


def is_signed(body: bytes, timestamp: str | None, signature: str | None, secrets: Iterable[str]) -> bool:
    """Return whether one of the secrets made the signature, at most five minutes ago."""
    from slack_sdk.signature import SignatureVerifier  # of the extra `slack`

    if not timestamp or not signature or not _is_number(timestamp) or not signature.isascii():
        return False
    time: Any = _Clock()
    return any(SignatureVerifier(secret, time).is_valid(body, timestamp, signature) for secret in secrets)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= 12
