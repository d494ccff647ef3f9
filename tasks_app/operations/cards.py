"""The operation on cards: the extended card, for authenticated callers."""

from a2a.errors import ExtendedCardNotConfigured
from a2a.requests import GetExtendedCard
from tasks_app.callers.access import check_scopes, check_tenant
from tasks_app.cards import public as cards
from tasks_app.operations.choose_agent import address_agent
from tasks_app.operations.operation import Context, Done, Grant


async def extended_card(request: GetExtendedCard, context: Context) -> Grant:
    """Return the extended card of an agent or of the whole server (A2A 1.0, 3.1.11).

    Raises ExtendedCardNotConfigured if the server has no address to put on a card.
    """
    check_tenant(context.caller, request.tenant)
    agent = address_agent(context)
    check_scopes(context.caller, agent.scopes, context.spelling)
    if not request.address:
        raise ExtendedCardNotConfigured(detail="the server has no such name: see ALLOWED_HOSTS and A2A_PUBLIC_URL")
    return Done(cards.extended_card(agent, request.address, context.caller, whole=context.agent is None))
