"""Deliveries to webhooks: whose turn it is, the POST, what its answer means, and what operators may do about it.

The rows are written by event_log/outbox.py together with their events. Every process may send: a turn is a lease.
"""

from tasks_app.webhooks.acts import (
    ActRefused,
    disable,
    enable,
    give_up,
    oldest_due,
    one_by_one,
    secret_of,
    shown_body,
)
from tasks_app.webhooks.again import Answer, no_delivery, send_again
from tasks_app.webhooks.keys import end_webhooks_of, revoke
from tasks_app.webhooks.posting import with_files
from tasks_app.webhooks.sender import sender
from tasks_app.webhooks.turns import release_all

__all__ = [
    "ActRefused",
    "Answer",
    "disable",
    "enable",
    "end_webhooks_of",
    "give_up",
    "no_delivery",
    "oldest_due",
    "one_by_one",
    "release_all",
    "revoke",
    "secret_of",
    "send_again",
    "sender",
    "shown_body",
    "with_files",
]
