"""The record of a call that goes with a change: its rows, and the mark on the events."""

from typing import Protocol

from tasks_app.database.rows import BodyRow, EventRow, ExchangeRow


class Recorded(Protocol):
    """A change that is stored with the record of its call."""

    exchange: ExchangeRow | None
    body: BodyRow | None
    events: list[EventRow]


def record(change: Recorded, exchange: ExchangeRow | None, body: BodyRow | None) -> None:
    """Have the record of a call stored with a change."""
    change.exchange, change.body = exchange, body
    for event in change.events:
        event.exchange_id = exchange.id if exchange else None


def drop_exchange(change: Recorded) -> bool:
    """Take the record out of a change; tell whether there was one."""
    if change.exchange is None:
        return False
    change.exchange = change.body = None
    for event in change.events:
        event.exchange_id = None
    return True
