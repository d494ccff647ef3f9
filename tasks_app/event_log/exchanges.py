"""The record of a call that goes with a change: its rows, and the mark on the events."""

from typing import Protocol

from tasks_app.database.rows import BodyRow, EventRow, ExchangeRow


class Recorded(Protocol):
    """A change that is stored with the record of its call."""

    exchange: ExchangeRow | None
    body: BodyRow | None
    events: list[EventRow]


def drop_exchange(change: Recorded) -> bool:
    """Take the record out of a change; tell whether there was one."""
    if change.exchange is None:
        return False
    change.exchange = change.body = None
    for event in change.events:
        event.exchange_id = None
    return True
