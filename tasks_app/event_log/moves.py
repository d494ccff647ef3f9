"""Moves of webhooks and deliveries from state to state: the only writer of their states."""

from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from tasks_app.models import Delivery, PushConfig
from tasks_app.models.states import DELIVERY_TRANSITIONS, WEBHOOK_TRANSITIONS, DeliveryState, WebhookState

State = WebhookState | DeliveryState


def set_state(rows: QuerySet[PushConfig] | QuerySet[Delivery], state: State, **columns: Any) -> int:
    """Move the rows from which the state may follow, and set these columns of theirs; return how many moved."""
    before = [former for former, after in _moves(state).items() if state in after]
    # A single state is compared: an index of the rows in one state serves no list.
    fitting = rows.filter(state=before[0]) if len(before) == 1 else rows.filter(state__in=before)
    return fitting.update(state=state, **columns)


def move(row: PushConfig | Delivery, state: State) -> None:
    """Move a row that is locked and saved later. Raises ValueError for a state that may not follow."""
    if state not in _moves(state)[type(state)(row.state)]:
        raise ValueError(f"{type(row).__name__} {row.pk} is {row.state}, which {state} does not follow")
    row.state = state.value


def _moves(state: State) -> Mapping[Any, frozenset[Any]]:
    return WEBHOOK_TRANSITIONS if isinstance(state, WebhookState) else DELIVERY_TRANSITIONS
