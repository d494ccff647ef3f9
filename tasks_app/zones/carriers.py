"""Carriers bring the bytes of a call to the execution zone, and those of the answer back. A2A_EXECUTION chooses one."""

from typing import Protocol

from django.conf import settings

SECONDS = 30.0
"""The most time for one call. No call waits for an agent."""


class NoAnswer(Exception):
    """No answer came. The call may or may not have arrived, and is sent again under the same key."""


class Untrusted(Exception):
    """The execution zone has not proved who it is, so no call was sent. The sentence says what an operator can do."""


class Carrier(Protocol):
    """A way to the execution zone."""

    async def carry(self, body: bytes) -> bytes:
        """Return the body of the answer to a call. Raises NoAnswer and Untrusted."""


def carrier() -> Carrier:
    """Return the carrier of this deployment."""
    match settings.A2A_EXECUTION.partition(":")[0]:
        case "in-process":
            from tasks_app.zones.in_process import InProcess

            return InProcess(settings.A2A_EXECUTION_KEY)
        case "queue":
            from tasks_app.zones.queue import Queue

            return Queue(settings.A2A_ZONE_QUEUE, settings.A2A_ZONE_SECRET, settings.A2A_EXECUTION_KEY)
        case "agentcore":
            from tasks_app.zones.agentcore import AgentCore

            return AgentCore(settings.A2A_EXECUTION.partition(":")[2])
        case _:
            from tasks_app.zones.https import Https

            return Https(settings.A2A_EXECUTION, settings.A2A_EXECUTION_KEY)
