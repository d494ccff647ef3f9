"""The card for callers who are known; and what is not offered yet, and says so."""

from django.conf import settings

from a2a.agents import registry
from a2a.errors import ExtendedCardNotConfigured, PushNotSupported, UnknownAgent
from a2a.requests import ConfigurePush, GetExtendedCard
from tasks_app import cards
from tasks_app.access import check_scope, check_tenant
from tasks_app.operations.shape import Context, Done, Steps


def no_push(request: ConfigurePush, context: Context) -> Steps:
    """A2A 1.0, 3.1.7: the card says pushNotifications false."""
    check_tenant(context.caller, request.tenant)
    raise PushNotSupported
    yield


def extended_card(request: GetExtendedCard, context: Context) -> Steps:
    """A2A 1.0, 3.1.11. Offered always, but without an address of the server there is no card to give."""
    check_tenant(context.caller, request.tenant)
    name = context.agent or settings.A2A_DEFAULT_AGENT
    agent = registry.get(name)
    if agent is None:
        raise UnknownAgent(agent=name[:64])
    for scope in agent.scopes:
        check_scope(context.caller, scope)
    if not request.address:
        raise ExtendedCardNotConfigured(detail="the server has no such name: see ALLOWED_HOSTS and A2A_PUBLIC_URL")
    return Done(cards.extended_card(agent, request.address, context.caller, whole=context.agent is None))
    yield
