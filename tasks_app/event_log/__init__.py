"""The log: the only writer of a task's state. Create, append, claim and read, all over groups.

Nothing else in the service updates a task, and nothing here knows who waits: after a commit `told` passes on hints.
"""

from collections.abc import Sequence

from tasks_app.event_log.append import (
    PUSHING,
    UNHEARD,
    Append,
    Appended,
    Pushing,
    Unheard,
    append_many,
    change,
    last_status,
    sources,
)
from tasks_app.event_log.as_of import LONG, Long, ReadAsOf, read_as_of, read_as_of_many, recent
from tasks_app.event_log.bodies import MakeBody, NoBody, body_of, make_bodies
from tasks_app.event_log.claim import Claim, Refresh, Renew, claim, leased, refresh_many, release_all, renew
from tasks_app.event_log.create import Create, FindKey, Known, create_many, find_key_many
from tasks_app.event_log.locks import LOCKED, Held, Locked, pauses, refused
from tasks_app.event_log.outbox import GROWTH, deliveries
from tasks_app.event_log.queue import Want, count_unfinished, next_after
from tasks_app.event_log.read import (
    PAGE,
    Head,
    LastEvents,
    ReadEvents,
    ReadHead,
    ReadTask,
    TaskRead,
    fold,
    last_events_many,
    read_events_many,
    read_heads_many,
    read_many,
    read_tails,
    run_seq,
    seq_of_message,
)
from tasks_app.event_log.registry import (
    MOST,
    SEALED_AT_ONCE,
    Full,
    Register,
    Remove,
    UnderWay,
    register,
    remove,
    seal_addresses,
)
from tasks_app.hints import Reached, hints

__all__ = [
    "GROWTH",
    "LOCKED",
    "LONG",
    "MOST",
    "PAGE",
    "PUSHING",
    "SEALED_AT_ONCE",
    "UNHEARD",
    "Append",
    "Appended",
    "Claim",
    "Create",
    "FindKey",
    "Full",
    "Head",
    "Held",
    "Known",
    "LastEvents",
    "Locked",
    "Long",
    "MakeBody",
    "NoBody",
    "Pushing",
    "ReadAsOf",
    "ReadEvents",
    "ReadHead",
    "ReadTask",
    "Refresh",
    "Register",
    "Remove",
    "Renew",
    "TaskRead",
    "UnderWay",
    "Unheard",
    "Want",
    "append_many",
    "body_of",
    "change",
    "claim",
    "count_unfinished",
    "create_many",
    "deliveries",
    "find_key_many",
    "fold",
    "last_events_many",
    "last_status",
    "leased",
    "make_bodies",
    "next_after",
    "pauses",
    "read_as_of",
    "read_as_of_many",
    "read_events_many",
    "read_heads_many",
    "read_many",
    "read_tails",
    "recent",
    "refresh_many",
    "refused",
    "register",
    "release_all",
    "remove",
    "renew",
    "run_seq",
    "seal_addresses",
    "seq_of_message",
    "sources",
    "told",
]


def told(news: Sequence[Reached]) -> None:
    """After a commit, and only then: who follows these tasks may look, and who runs tasks may claim."""
    if news:
        hints.reached(list(news))
        if any(item.state == "submitted" for item in news):
            hints.offer()
