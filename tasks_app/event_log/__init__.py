"""The log: the only writer of a task's state. Create, append, claim and read, all over groups.

Nothing else in the service updates a task, and nothing here knows who waits: after a commit `notify` passes on hints.
"""

from tasks_app.event_log.advances import ChargeDrawn, CreateAdvanced, EndAdvance, Lend
from tasks_app.event_log.append import Append, append_many, change
from tasks_app.event_log.as_of import LONG, Long, ReadAsOf, read_as_of, read_as_of_many, recent
from tasks_app.event_log.bodies import MakeBody, NoBody, Unwanted, body_of
from tasks_app.event_log.budgets import Spend
from tasks_app.event_log.changes import (
    HAS_WEBHOOKS,
    NEWER_MESSAGE,
    Appended,
    NewerMessage,
    event_row,
    last_status,
)
from tasks_app.event_log.charged import ORPHAN_AFTER, CreateCharged, CreateSettled, Release, Reserve
from tasks_app.event_log.claim import Claim, claim, recover
from tasks_app.event_log.create import Create, FindKey, FindKeyLast, KeyTarget, create_many, find_key_many
from tasks_app.event_log.exchanges import record
from tasks_app.event_log.late_costs import ChargeLate, late_cost
from tasks_app.event_log.leases import Renew, release_all, renew
from tasks_app.event_log.news import notify
from tasks_app.event_log.next_run import ReserveAgain
from tasks_app.event_log.outbox import GROWTH, deliveries
from tasks_app.event_log.queue import Demand, count_unfinished, next_after
from tasks_app.event_log.read import (
    Head,
    ReadHead,
    ReadOrMeasure,
    ReadTask,
    TaskRead,
    fold,
    read_many,
    run_seq,
)
from tasks_app.event_log.read_events import (
    LastEvents,
    ReadEvents,
    read_events_many,
    read_tails,
    seq_after_questions,
    seq_of_message,
    stored_event,
)
from tasks_app.event_log.snapshots import Refresh
from tasks_app.event_log.webhooks import (
    MAX_WEBHOOKS,
    SEAL_BATCH,
    Full,
    Register,
    Remove,
    register,
    remove,
    seal_addresses,
)

__all__ = [
    "GROWTH",
    "HAS_WEBHOOKS",
    "LONG",
    "MAX_WEBHOOKS",
    "NEWER_MESSAGE",
    "ORPHAN_AFTER",
    "SEAL_BATCH",
    "Append",
    "Appended",
    "ChargeDrawn",
    "ChargeLate",
    "Claim",
    "Create",
    "CreateAdvanced",
    "CreateCharged",
    "CreateSettled",
    "Demand",
    "EndAdvance",
    "FindKey",
    "FindKeyLast",
    "Full",
    "Head",
    "KeyTarget",
    "LastEvents",
    "Lend",
    "Long",
    "MakeBody",
    "NewerMessage",
    "NoBody",
    "ReadAsOf",
    "ReadEvents",
    "ReadHead",
    "ReadOrMeasure",
    "ReadTask",
    "Refresh",
    "Register",
    "Release",
    "Remove",
    "Renew",
    "Reserve",
    "ReserveAgain",
    "Spend",
    "TaskRead",
    "Unwanted",
    "append_many",
    "body_of",
    "change",
    "claim",
    "count_unfinished",
    "create_many",
    "deliveries",
    "event_row",
    "find_key_many",
    "fold",
    "last_status",
    "late_cost",
    "next_after",
    "notify",
    "read_as_of",
    "read_as_of_many",
    "read_events_many",
    "read_many",
    "read_tails",
    "recent",
    "record",
    "recover",
    "register",
    "release_all",
    "remove",
    "renew",
    "run_seq",
    "seal_addresses",
    "seq_after_questions",
    "seq_of_message",
    "stored_event",
]
