"""Exchanges as the recorder has stored them."""

from tasks_app.exchanges.recording import recorder
from tasks_app.models import Exchange, ExchangeBody
from tests.conftest import PATIENCE


def recorded(number: int) -> list[Exchange]:
    """Return the exchanges in the order of the calls. There must be so many, all with an answer."""
    assert recorder.drain(PATIENCE)
    found = list(Exchange.objects.select_related("body").order_by("id"))
    assert len(found) == number
    assert ExchangeBody.objects.count() == number
    return found
