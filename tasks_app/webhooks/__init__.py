"""Deliveries to webhooks: leases, the POST, the meaning of its answer, and the acts of operators.

event_log/outbox.py writes the rows of deliveries in the transactions of their events. Every process may send: a lease
makes sure that one of them does.
"""

from tasks_app.webhooks.acts import (
    disable,
    enable,
    give_up,
    oldest_due,
    one_by_one,
    readable_body,
    secret_of,
)
from tasks_app.webhooks.again import Answer, no_delivery, send_again
from tasks_app.webhooks.keys import end_webhooks_of
from tasks_app.webhooks.leases import release_all
from tasks_app.webhooks.posting import with_files
from tasks_app.webhooks.receivers import agree, forget
from tasks_app.webhooks.sending import sender

__all__ = [
    "Answer",
    "agree",
    "disable",
    "enable",
    "end_webhooks_of",
    "forget",
    "give_up",
    "no_delivery",
    "oldest_due",
    "one_by_one",
    "readable_body",
    "release_all",
    "secret_of",
    "send_again",
    "sender",
    "with_files",
]
