"""The routine that sums what owners have stored, for their quota."""

import time

from django.conf import settings

from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, R
from tasks_app.limits.quotas import Quota, quota
from tasks_app.limits.stored import sum_stored
from tasks_app.upkeep.routine import Routine

REST = 30
"""The rest after a sum, as a multiple of its time: sums take about three per cent of a connection at most."""
PATIENCE = 3_600.0
"""Seconds that a sum may take."""


class DoInTurn(Do[R], frozen=True):
    """A long read of the service itself, on a connection of its own, so that no other work waits for it."""

    lane = "sums"


class StoredBytes(Routine):
    """The thread that sums the stored bytes of owners. Every process with doors has one."""

    name = "stored bytes"
    title = "summing the stored bytes of owners"
    at_once = True
    stop_seconds = 0.5  # A sum changes nothing, so that the process need not wait for one.

    def __init__(self, own_quota: Quota) -> None:
        super().__init__()
        self.quota = own_quota
        self.rest_until = float("-inf")
        """The time on the monotonic clock before which no sum begins."""

    def start(self) -> None:
        self.quota.is_summed = True
        super().start()

    def run_round(self) -> None:
        """Sum, unless there is no quota, or the last sum was too short a time ago."""
        if settings.A2A_OWNER_STORED_BYTES and (began := time.monotonic()) >= self.rest_until:
            self.count()
            now = time.monotonic()
            self.rest_until = now + REST * (now - began)

    def count(self) -> None:
        """Sum now what owners have stored."""
        baseline = self.quota.begin_sum()
        if baseline.owners is None or baseline.owners:
            sums = bridge.do(DoInTurn(lambda: sum_stored(baseline.owners)), PATIENCE)
            self.quota.end_sum(baseline, {owner_id: kinds.total() for owner_id, kinds in sums.items()})


stored_bytes = StoredBytes(quota)
"""The routine of this process."""
