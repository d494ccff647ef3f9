"""States of webhooks and deliveries: every pair is either a move of the table or refused."""

from itertools import product

import pytest

from tasks_app import clock
from tasks_app.event_log.moves import State, move, set_state
from tasks_app.ids import uuid7
from tasks_app.models import Delivery, Webhook
from tasks_app.models.states import DELIVERY_TRANSITIONS, WEBHOOK_TRANSITIONS, DeliveryState, WebhookState

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def webhook(state: str = "active") -> Webhook:
    now = clock.now()
    return Webhook.objects.create(
        id=uuid7(),
        task_id="t",
        name="c",
        version="1.0",
        url="",
        host="",
        state=state,
        created_at=now,
        updated_at=now,
    )


def delivery(state: str) -> Delivery:
    return Delivery.objects.create(
        id=uuid7(), webhook=webhook(), task_id="t", seq=1, version="1.0", state=state, created_at=clock.now()
    )


def test_every_state_has_its_moves_and_no_other_is_in_the_tables() -> None:
    assert set(WEBHOOK_TRANSITIONS) == set(WebhookState)
    assert set(DELIVERY_TRANSITIONS) == set(DeliveryState)
    assert [state for state, _ in Webhook.STATES] == list(WebhookState)
    assert [state for state, _ in Delivery.STATES] == list(DeliveryState)


def test_no_end_of_a_delivery_follows_another_end() -> None:
    over = set(DeliveryState) - {DeliveryState.WAITING, DeliveryState.DELIVERED}
    assert not [pair for pair in product(over, over) if pair[1] in DELIVERY_TRANSITIONS[pair[0]]]
    assert WEBHOOK_TRANSITIONS[WebhookState.REMOVED] == {WebhookState.ACTIVE}, "its owner alone brings it back"


PAIRS: list[tuple[State, State]] = [*product(WebhookState, WebhookState), *product(DeliveryState, DeliveryState)]


@pytest.mark.parametrize(("before", "after"), PAIRS, ids=lambda state: f"{type(state).__name__}-{state}")
def test_a_row_moves_as_the_table_says(before: State, after: State) -> None:
    if isinstance(before, WebhookState):
        row: Webhook | Delivery = webhook(before)
        may = after in WEBHOOK_TRANSITIONS[before]
    else:
        row = delivery(before)
        may = after in DELIVERY_TRANSITIONS[before]
    rows = type(row).objects.filter(pk=row.pk)
    assert set_state(rows, after) == may
    row.refresh_from_db()
    assert row.state == (after if may else before)
    row.state = before.value
    if may:
        move(row, after)
        assert row.state == after.value
    else:
        with pytest.raises(ValueError, match=f"is {before}, which {after} does not follow"):
            move(row, after)
