"""The money for another attempt of a task."""

from django.conf import settings
from msgspec.structs import replace

from a2a.agents import Agent
from a2a.errors import BudgetExceeded
from a2a.failures import BudgetSpent
from a2a.money import Cost, show_usd
from tasks_app.database.bridge import bridge
from tasks_app.event_log import ReadTask, ReserveAgain, TaskRead


async def pay_again(read: TaskRead, agent: Agent | None) -> TaskRead:
    """Reserve what another attempt may cost, beside what earlier ones have cost; return the task with its new limit.

    Raises BudgetSpent if less than the minimum is left of a stored budget, or of the budget of the call, and errors of
    the database.
    """
    cost = agent.cost if agent else None
    if cost is None or read.attempt <= 1:
        return read
    read = await _reserve(read, cost)
    least = max(cost.least, 1)
    if read.limit is not None and read.limit - read.spent < least:
        raise BudgetSpent(_no_money("budget of the task", show_usd(read.limit - read.spent), show_usd(least)))
    return read


async def _reserve(read: TaskRead, cost: Cost) -> TaskRead:
    """Enlarge the reservation of a task that has one; return the task with its new limit. Raises BudgetSpent."""
    if not 0 < read.reserved < read.spent + cost.most:
        return read
    task_id, patience = read.document.id, settings.A2A_LEASE_SECONDS
    try:
        await bridge.ask(ReserveAgain(task_id=task_id, at_work=0, least=cost.least, most=cost.most), patience=patience)
    except BudgetExceeded as error:
        facts = error.facts
        what = f"stored budget of the {facts['budget']}"
        raise BudgetSpent(_no_money(what, facts["available"], facts["required"])) from None
    now = await bridge.ask(ReadTask(task_id=task_id, sight=None, history=False), patience=patience)
    return replace(read, limit=now.limit, reserved=now.reserved) if now else read


def _no_money(what: str, available: str, required: str) -> str:
    return (
        f"There is no money for another attempt: {available} USD are left of the {what}, and the agent costs at least "
        f"{required} USD."
    )
