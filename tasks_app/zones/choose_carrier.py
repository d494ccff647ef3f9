"""A2A_EXECUTION chooses the carrier of a deployment. The libraries of the others are not loaded."""

from functools import lru_cache

from django.conf import settings

from tasks_app.zones.carriers import Carrier


def carrier() -> Carrier:
    """Return the carrier of this deployment. It keeps its connections from call to call."""
    return _carrier(
        settings.A2A_EXECUTION, settings.A2A_EXECUTION_KEY, settings.A2A_ZONE_QUEUE, settings.A2A_ZONE_SECRET
    )


@lru_cache(maxsize=1)
def _carrier(place: str, key: str, queue: str, secret: str) -> Carrier:
    match place.partition(":")[0]:
        case "in-process":
            from tasks_app.zones.in_process import InProcess

            return InProcess(key)
        case "queue":
            from tasks_app.zones.queue import Queue

            return Queue(queue, secret, key)
        case "agentcore":
            from tasks_app.zones.agentcore import AgentCore

            return AgentCore(place.partition(":")[2])
        case _:
            from tasks_app.zones.https import Https

            return Https(place, key)
