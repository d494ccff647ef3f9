"""What is not offered yet, and says so."""

from a2a.errors import PushNotSupported, UnsupportedOperation
from a2a.requests import ConfigurePush, GetExtendedCard
from tasks_app.operations.shape import Context, Steps


def no_push(request: ConfigurePush, context: Context) -> Steps:
    """A2A 1.0, 3.1.7: the card says pushNotifications false."""
    raise PushNotSupported
    yield


def no_extended_card(request: GetExtendedCard, context: Context) -> Steps:
    """A2A 1.0, 3.1.11: the card says extendedAgentCard false."""
    raise UnsupportedOperation
    yield
