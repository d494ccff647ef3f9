"""The routine of relays: the cards of the remote agents, and remote tasks whose tasks here have ended."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from tasks_app.models import RelayedTask
from tasks_app.relays.options import RelayOptions
from tasks_app.upkeep.routine import Routine

STOP_LOOK = 0.25
"""Seconds between two looks whether the process is told to end."""


class RelayRoutine(Routine):
    """The thread that reads cards and cancels remote tasks. Every process with relays has one."""

    name = "relays"
    title = "reading the cards of relays and canceling remote tasks"
    at_once = True

    def run_round(self) -> None:
        """Describe the relays, read the cards that are due, and cancel remote tasks whose tasks here have ended."""
        from tasks_app.relays import cancellation, cards  # load the client, which processes without relays never need

        cards.describe_agents()
        due, rows = cards.claim_due(), cancellation.find_open()
        if due or rows:
            asyncio.run(self._call(due, rows))
        if due:
            cards.describe_agents()

    async def _call(self, due: Sequence[RelayOptions], rows: Sequence[RelayedTask]) -> None:
        """Call the remote agents, until the process is told to end: one that never answers must not delay that."""
        from tasks_app.relays import cancellation, cards, remotes

        async with remotes.guarded_http() as http:
            calls = asyncio.gather(*(cards.read_card(relay, http) for relay in due), cancellation.cancel_all(rows))
            while not (calls.done() or self.stopping.is_set()):
                await asyncio.wait([calls], timeout=STOP_LOOK)
            calls.cancel()
            with suppress(asyncio.CancelledError):
                await calls


relay_routine = RelayRoutine()
"""The routine of this process."""
