"""The operation that says what a call would get for a budget, without beginning or reserving anything."""

from a2a.agents import Agent
from a2a.answers import Agreement, Offer
from a2a.errors import BudgetExceeded, MissingScope, UnknownAgent
from a2a.requests import Negotiate
from tasks_app.callers.access import Caller, has_right, has_scopes
from tasks_app.callers.permissions import may_ask
from tasks_app.callers.scopes import WRITE
from tasks_app.limits.budgets import ReadRoom, budgets_of
from tasks_app.operations.choose_agent import address_agent, find_by_name
from tasks_app.operations.operation import Context, Done, Grant


async def negotiate(request: Negotiate, context: Context) -> Grant:
    """Return an offer for each capability. Raises UnknownAgent for an address without an agent.

    At the address of an agent only its own skills are offered, at that of the server those of all agents.
    """
    main = address_agent(context)
    context.agent_name = main.name
    names = request.capabilities or [skill.id for skill in main.skills]
    alone = main if context.agent is not None or not request.capabilities else None
    funds = await _funds(request, context.caller)
    offers = tuple(_offer(name, funds, context.caller, alone) for name in dict.fromkeys(names))
    return Done(Agreement(offers=offers, budget=request.budget))


async def _funds(request: Negotiate, caller: Caller) -> int | None:
    """Return the most that one call may cost: the least of the budget and of what is left of the caller's stored
    budgets. None without any of them."""
    budgets = await budgets_of(caller)
    room = await ReadRoom(budgets=budgets) if budgets else None
    return min((amount for amount in (request.budget, room) if amount is not None), default=None)


def _offer(name: str, funds: int | None, caller: Caller, alone: Agent | None) -> Offer:
    """Return the offer for a capability. An agent that the caller may not use is as unknown as one that does not
    exist."""
    agent = find_by_name(caller, name) if alone is None else _of_address(caller, name, alone)
    if agent is None:
        return Offer(capability=name, refusal=UnknownAgent)
    if not (has_right(caller, WRITE) and has_scopes(caller, agent.scopes)):
        return Offer(capability=name, agent=agent.name, cost=agent.cost, refusal=MissingScope)
    if agent.cost is None or funds is None:
        return Offer(capability=name, agent=agent.name, cost=agent.cost)
    if funds < max(agent.cost.least, 1):
        return Offer(capability=name, agent=agent.name, cost=agent.cost, refusal=BudgetExceeded)
    return Offer(capability=name, agent=agent.name, cost=agent.cost, is_limited=funds < agent.cost.most)


def _of_address(caller: Caller, name: str, agent: Agent) -> Agent | None:
    """Return the agent of the address if it has the capability and the caller may ask it; else None."""
    is_able = name == agent.name or any(skill.id == name for skill in agent.skills)
    return agent if is_able and may_ask(caller, agent, name) else None
