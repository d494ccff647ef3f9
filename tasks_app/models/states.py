"""The states of webhooks and deliveries, and every move between them. Data: only event_log/moves.py reads the moves."""

from enum import StrEnum


class WebhookState(StrEnum):
    """Where a webhook is in its life."""

    ACTIVE = "active"
    """It gets deliveries."""
    DISABLED = "disabled"
    """Switched off: by an operator, by the end of its key, or because its receiver is gone."""
    REMOVED = "removed"
    """Its owner removed it. The row stays for its deliveries."""


WEBHOOK_TRANSITIONS: dict[WebhookState, frozenset[WebhookState]] = {
    # Registered again under its id; switched off; removed.
    WebhookState.ACTIVE: frozenset(WebhookState),
    # Enabled by an operator, or registered again; removed.
    WebhookState.DISABLED: frozenset({WebhookState.ACTIVE, WebhookState.REMOVED}),
    # Registered again.
    WebhookState.REMOVED: frozenset({WebhookState.ACTIVE}),
}
"""From a state to the states that may follow."""


class DeliveryState(StrEnum):
    """Where a delivery is in its life."""

    WAITING = "waiting"
    """To be tried."""
    DELIVERED = "delivered"
    """Its receiver has acknowledged it."""
    DEAD = "dead"
    """Given up."""
    DROPPED = "dropped"
    """Its webhook was removed, or registered again for other events."""
    SUPERSEDED = "superseded"
    """A later delivery says all that it says."""


_OVER = frozenset({DeliveryState.WAITING, DeliveryState.DELIVERED})
# Sent again, by an operator or to another address; or a try that was under way then has arrived.
DELIVERY_TRANSITIONS: dict[DeliveryState, frozenset[DeliveryState]] = {
    DeliveryState.WAITING: frozenset(DeliveryState),
    DeliveryState.DELIVERED: _OVER,
    DeliveryState.DEAD: _OVER,
    DeliveryState.DROPPED: _OVER,
    DeliveryState.SUPERSEDED: _OVER,
}
"""From a state to the states that may follow."""


class SlackQuestionState(StrEnum):
    """Where a question from Slack is on its way to a reply."""

    WAITING = "waiting"
    """To be answered, or being answered."""
    REPLYING = "replying"
    """The whole reply is stored, and on its way to Slack."""
    ANSWERED = "answered"
    """The whole reply is in Slack."""
    FAILED = "failed"
    """Slack has refused the reply, or was away for too long."""
    DROPPED = "dropped"
    """An operator has dropped it."""


SLACK_QUESTION_TRANSITIONS: dict[SlackQuestionState, frozenset[SlackQuestionState]] = {
    SlackQuestionState.WAITING: frozenset({SlackQuestionState.REPLYING, SlackQuestionState.DROPPED}),
    SlackQuestionState.REPLYING: frozenset(
        {SlackQuestionState.ANSWERED, SlackQuestionState.FAILED, SlackQuestionState.DROPPED}
    ),
    SlackQuestionState.ANSWERED: frozenset(),
    # Sent again by an operator.
    SlackQuestionState.FAILED: frozenset({SlackQuestionState.REPLYING}),
    SlackQuestionState.DROPPED: frozenset(),
}
"""From a state to the states that may follow."""
