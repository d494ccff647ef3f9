"""The terms of use of an agent: from its options, the limits of callers, the retention, and the schemes that are on."""

import math

from django.conf import settings

from a2a.agents import Agent
from a2a.requests import Invoke
from a2a.tokens import tokens_of
from a2a.types import Privacy, Terms
from tasks_app.callers.schemes import auth
from tasks_app.limits.rate_limits import cost_of_send, default_rate

UNDECLARED = Privacy(
    pii=True,
    phi=True,
    notes="The author of the agent has not declared what data it works with, so that it may be of any kind.",
)


def terms_of(agent: Agent) -> Terms:
    """Return the terms of an agent. A limit of tokens that its author does not declare is that of the bytes."""
    body = min(settings.A2A_INVOKE_BYTES, settings.A2A_BODY_BYTES)
    return Terms(
        input_tokens=agent.max_input_tokens or tokens_of(body),
        output_tokens=agent.max_output_tokens or tokens_of(settings.A2A_TASK_CHARACTERS),
        latency=latency_of(agent),
        cost=agent.cost,
        per_minute=_calls_per_minute(),
        privacy=agent.privacy or UNDECLARED,
        retention_days=math.ceil(max(settings.A2A_TASK_DAYS, settings.A2A_EXCHANGE_DAYS)),
        auth=auth(),
        inputs=agent.schema,
    )


def latency_of(agent: Agent) -> float:
    """Return the seconds in which a call of the agent that waits is answered."""
    seconds: float = settings.A2A_INVOKE_SECONDS
    return seconds if agent.max_latency is None else agent.max_latency


def _calls_per_minute() -> int | None:
    """Return the calls that a caller without a rate of its own may make in a minute; None without a limit."""
    rate, cost = default_rate(), cost_of_send(Invoke)
    return max(1, int(rate.per_minute // cost)) if rate and cost else None
