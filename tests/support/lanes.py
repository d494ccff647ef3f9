"""Lanes without threads, for tests inside a transaction, which no other thread could see; and a lane that hangs."""

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from asgiref.sync import sync_to_async

from tasks_app.database import bridge as bridges
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.lanes import Lane, Refusals, settle
from tasks_app.database.waits import Entry
from tasks_app.database.work import Do
from tests.support.servers import PATIENCE


class InlineLane(Lane):
    """A lane that does each item at once, in the thread that has the test's connection."""

    def __init__(self, name: str) -> None:
        super().__init__(name, do_group, most=0)
        self.under_way: set[asyncio.Task[None]] = set()
        self.waiting_groups: list[Sequence[Entry]] = []
        """Entries that no thread has begun."""

    def put(self, entries: Sequence[Entry]) -> Refusals:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.finish(entries)
        else:
            self.waiting_groups.append(entries)
            task = loop.create_task(sync_to_async(self.finish)(entries))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
        return []

    def finish(self, entries: Sequence[Entry]) -> None:
        self.waiting_groups = [group for group in self.waiting_groups if group is not entries]
        for entry in entries:
            settle([entry], do_group(type(entry.item), [entry.item]))


@contextmanager
def inline_lanes() -> Iterator[None]:
    """Have the bridge do everything on the spot."""
    lanes: dict[str, InlineLane] = {}
    with patch.object(bridges, "open_lane", InlineLane), patch.object(bridge, "lanes", lanes):
        yield
        # The loop of a call may end before a record behind its answer is written. Its future would stay open for ever.
        for lane in lanes.values():
            for entries in lane.waiting_groups:
                try:
                    lane.finish(entries)
                except Exception as error:  # noqa: BLE001  # as in a lane: the caller gets it, if there still is one
                    settle(entries, [error] * len(entries))


class Read(Do[None], frozen=True):
    """A function in the lane of short reads of callers."""

    lane = "read"


@contextmanager
def hanging_reads() -> Iterator[None]:
    """Have the short reads of callers hang until the end of the block."""
    begun, may_end = threading.Event(), threading.Event()

    def hang() -> None:
        begun.set()
        may_end.wait()

    bridge.put(Read(function=hang))
    try:
        assert begun.wait(PATIENCE)
        yield
    finally:
        may_end.set()
