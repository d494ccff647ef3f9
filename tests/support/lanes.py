"""Lanes without threads, for tests inside a transaction, which no other thread could see."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

from asgiref.sync import sync_to_async

from tasks_app.database import bridge as bridges
from tasks_app.database.bridge import bridge
from tasks_app.database.groups import do_group
from tasks_app.database.lanes import Lane, Refusals, settle
from tasks_app.database.waits import Ticket


class InlineLane(Lane):
    """A lane that does each item at once, in the thread that has the test's connection."""

    def __init__(self, name: str) -> None:
        super().__init__(name, do_group, most=0)
        self.under_way: set[asyncio.Task[None]] = set()

    def put(self, tickets: Sequence[Ticket]) -> Refusals:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.finish(tickets)
        else:
            task = loop.create_task(sync_to_async(self.finish)(tickets))
            self.under_way.add(task)
            task.add_done_callback(self.under_way.discard)
        return []

    def finish(self, tickets: Sequence[Ticket]) -> None:
        for ticket in tickets:
            settle([ticket], do_group(type(ticket.item), [ticket.item]))


@contextmanager
def inline_lanes() -> Iterator[None]:
    """Have the bridge do everything on the spot."""
    with patch.object(bridges, "open_lane", InlineLane), patch.object(bridge, "lanes", {}):
        yield
