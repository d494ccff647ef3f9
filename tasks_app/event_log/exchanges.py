"""The record of a call that is stored with a change: its rows, and its id in the events."""

from typing import Protocol

from tasks_app.database.rows import BodyRow, EventRow, ExchangeRow


class CarriesExchange(Protocol):
    """A change that may carry the record of its call."""

    exchange: ExchangeRow | None
    body: BodyRow | None
    events: list[EventRow]


def record(change: CarriesExchange, exchange: ExchangeRow | None, body: BodyRow | None) -> None:
    """Put the record of a call into a change."""
    change.exchange, change.body = exchange, body
    for event in change.events:
        event.exchange_id = exchange.id if exchange else None


def drop_exchange(change: CarriesExchange) -> bool:
    """Take the record out of a change; return whether there was one."""
    if change.exchange is None:
        return False
    change.exchange = change.body = None
    for event in change.events:
        event.exchange_id = None
    return True
