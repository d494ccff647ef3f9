"""The only writer of the states of webhooks and deliveries."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from tasks_app.models import Delivery, Webhook
from tasks_app.models.states import DELIVERY_TRANSITIONS, WEBHOOK_TRANSITIONS, DeliveryState, WebhookState

State = WebhookState | DeliveryState


def set_state(rows: QuerySet[Webhook] | QuerySet[Delivery], state: State, **columns: Any) -> int:
    """Move the rows whose state allows it to the state, and set these columns in them; return how many moved."""
    sources = [source for source, targets in _moves(state).items() if state in targets]
    # A single state is compared with `=`: an index of the rows in one state serves no list of states.
    movable = rows.filter(state=sources[0]) if len(sources) == 1 else rows.filter(state__in=sources)
    return movable.update(state=state, **columns)


def move(row: Webhook | Delivery, state: State) -> None:
    """Move a row that its caller has locked and saves later. Raises ValueError for a state that may not follow."""
    if state not in _moves(state)[type(state)(row.state)]:
        raise ValueError(f"{type(row).__name__} {row.pk} is {row.state}, which {state} does not follow")
    row.state = state.value


def _moves(state: State) -> Mapping[Any, frozenset[Any]]:
    return WEBHOOK_TRANSITIONS if isinstance(state, WebhookState) else DELIVERY_TRANSITIONS
