"""A flood of wrong credentials, as the process of a test sees it, and its refusals."""

import re

import pytest

from tasks_app.callers import access
from tasks_app.callers.access import MANY_MISSES, Misses
from tasks_app.exchanges.refusals import tally
from tasks_app.transports import floods
from tasks_app.transports.doubts import Doubts, find_unknown, find_wrong


def begin_flood(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Let a flood be under way until the end of the test. Refusals of the address are recorded no more."""
    monkeypatch.setattr(access, "misses", Misses())
    monkeypatch.setattr(access.misses, "_turn", lambda: None)  # The second of its counts does not end.
    monkeypatch.setattr(floods, "doubted_secrets", Doubts(find_unknown))
    monkeypatch.setattr(floods, "doubted_tokens", Doubts(find_wrong))
    access.misses.count(2 * MANY_MISSES)
    while tally.count(address, 401):
        pass


def without_wait(content: bytes) -> bytes:
    """Return an error without the seconds to wait, which pass between two refusals."""
    return re.sub(rb'("retry\w*":"?)[\d.]+', rb"\1", content, flags=re.IGNORECASE)
