"""The routine of relays: the cards of the remote agents, and remote tasks whose tasks here have ended."""

import asyncio
from collections.abc import Sequence

from tasks_app.models import RelayedTask
from tasks_app.relays.registration import RelayOptions
from tasks_app.upkeep.routine import Routine


class RelayRoutine(Routine):
    """The thread that reads cards and cancels remote tasks. Every process with relays has one."""

    name = "relays"
    title = "reading the cards of relays and canceling remote tasks"
    at_once = True

    def run_round(self) -> None:
        """Describe the relays, read the cards that are due, and cancel remote tasks that nobody waits for."""
        from tasks_app.relays import cards, settling  # load the client, which processes without relays never need

        cards.describe_agents()
        due, rows = cards.claim_due(), settling.find_open()
        if due or rows:
            asyncio.run(_call(due, rows))
        if due:
            cards.describe_agents()


async def _call(due: Sequence[RelayOptions], rows: Sequence[RelayedTask]) -> None:
    from tasks_app.relays import cards, remotes, settling

    async with remotes.guarded_http() as http:
        await asyncio.gather(*(cards.read_card(relay, http) for relay in due), settling.settle_all(rows, http))


relay_routine = RelayRoutine()
"""The routine of this process."""
