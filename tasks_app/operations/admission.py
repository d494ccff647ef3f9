"""Checks that there is money for a run: the budget of the call or of its task, and the stored budgets of the caller."""

from a2a.agents import Agent
from a2a.money import HEADER
from a2a.requests import SendMessage
from a2a.spending import Spending
from a2a.states import TaskState
from tasks_app.event_log import Head, ReserveAgain
from tasks_app.limits.budgets import Charge, budgets_of, refusal
from tasks_app.operations.plan import Plan


def check_budget(request: SendMessage, agent: Agent | None) -> None:
    """Check that the budget of the call covers the minimum expected cost. Raises BudgetExceeded."""
    if agent is None or agent.cost is None or request.budget is None:
        return
    if request.budget < max(agent.cost.least, 1):
        raise refusal(HEADER, request.budget, agent.cost.least)


async def charge_again(request: SendMessage, head: Head, agent: Agent | None) -> None:
    """Reserve what the run that a message begins may cost. Raises BudgetExceeded.

    The agent of a task at work may be called again because of the message. Such a task needs the money for that run,
    too, beside that for the run at work, which may not have reported any cost yet.
    """
    if agent is None or (cost := agent.cost) is None:
        return
    check_budget(request, agent)
    if head.budget is not None and head.budget - head.spent < max(cost.least, 1):
        raise refusal("task", head.budget - head.spent, cost.least)
    at_work = cost.most if head.state == TaskState.WORKING else 0
    # A task for which no stored budget pays has no reservation.
    if head.reserved and head.reserved < head.spent + at_work + cost.most:
        await ReserveAgain(task_id=head.task_id, at_work=at_work, least=cost.least, most=cost.most)


async def charge(plan: Plan) -> None:
    """Add to the plan what its task reserves. An agent without a cost reserves nothing. Raises BudgetExceeded.

    The budget of the call does not lower that: the report of a run that exceeds it counts in full.
    """
    cost = plan.agent.cost
    if cost is None:
        return
    check_budget(plan.request, plan.agent)
    plan.run.spending = Spending(plan.request.budget)
    if budgets := await budgets_of(plan.context.caller):
        plan.charge = Charge(task_id=plan.run.task_id, budgets=budgets, least=cost.least, most=cost.most)
