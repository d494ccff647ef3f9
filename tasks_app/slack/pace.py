"""The pace of calls to Slack's Web API: about one a second for a channel, and a pause when Slack asks for one."""

import asyncio
from collections.abc import Hashable
from time import monotonic

from django.conf import settings

MOST = 5_000
"""Keys that are remembered. Beyond it, those whose time has come are forgotten."""


class Pace:
    """The earliest time of the next call for each key, by the monotonic clock."""

    def __init__(self) -> None:
        self.times: dict[Hashable, float] = {}

    def reserve(self, keys: tuple[Hashable, ...], now: float) -> float:
        """Take the next place for all keys, and return the seconds to wait for it."""
        if len(self.times) > MOST:
            self.times = {key: time for key, time in self.times.items() if time > now}
        start = max([now, *(self.times.get(key, now) for key in keys)])
        self.times.update(dict.fromkeys(keys, start + settings.A2A_SLACK_EDIT_SECONDS))
        return start - now

    def hold(self, keys: tuple[Hashable, ...], seconds: float, now: float) -> None:
        """Put the next call off, because Slack asked for it."""
        for key in keys:
            self.times[key] = max(self.times.get(key, now), now + seconds)

    async def wait(self, keys: tuple[Hashable, ...]) -> None:
        """Wait for the next place of all keys."""
        if seconds := self.reserve(keys, monotonic()):
            await asyncio.sleep(seconds)
