"""The columns of tables as operators read them, in commands and over their API."""

TASK = (
    "context_id",
    "agent",
    "state",
    "status_at",
    "last_seq",
    "queue",
    "priority",
    "fence",
    "attempt",
    "max_attempts",
    "not_before",
    "timeout",
    "lease_owner",
    "lease_until",
    "deadline",
    "created_at",
    "budget",
    "share",
    "reserved",
    "spent",
)
"""Columns of a task behind its id, its tenant and its owner."""
MONEY = ("budget", "share", "reserved", "spent")
"""Columns of a task that have millionths of a dollar. Operators read them as text in dollars, such as 0.25."""
EVENT = ("seq", "fence", "kind", "state", "actor", "exchange_id", "created_at", "payload")
"""Columns of an event of a task."""
RUN = ("fence", "worker", "started_at", "ended_at", "outcome", "reference", "traceback")
"""Columns of a run of a task."""
RELAYED = ("relay", "remote_id", "is_open")
"""Columns of the remote task behind a task of a relay."""
DELIVERY = (
    "id",
    "webhook_id",
    "task_id",
    "seq",
    "version",
    "state",
    "attempt",
    "status",
    "error",
    "created_at",
    "done_at",
)
DELIVERY_TRY = ("attempt", "at", "status", "error", "duration_ms")
WEBHOOK = ("key_id", "caller_credential", "schemes", "state", "reason", "due_at", "created_at", "updated_at")
"""Columns of a webhook behind its address."""
PROCESS = (
    "name",
    "role",
    "version",
    "started_at",
    "seen_at",
    "ended_at",
    "steady_at",
    "clock_off",
    "troubles",
    "lost",
    "lag",
)
WRONG_LOGINS = (
    "kind",
    "value",
    "running",
    "total",
    "refused",
    "locked_until",
    "began_at",
    "last_at",
    "last_with",
    "right_at",
)
SHARED_STREAM = ("state", "reason", "last_seq", "size", "created_at", "active_at", "closed_at")
"""Columns of a shared stream behind its id, its tenant and its owner."""
CHUNK = ("seq", "author", "role", "is_last", "state", "own_seq", "task_id", "task_seq", "created_at")
"""Columns of a chunk beside its parts."""
SLACK_QUESTION = (
    "event_id",
    "channel",
    "thread",
    "ts",
    "user",
    "state",
    "task_id",
    "refusal",
    "posts",
    "fence",
    "failures",
    "problem",
    "due_at",
    "created_at",
    "over_at",
)
"""Columns of a question from Slack behind its id, its tenant, its owner and its workspace."""
WORKFLOW = (
    "name",
    "address",
    "state",
    "phase",
    "runs_until",
    "reason",
    "context_id",
    "created_at",
    "updated_at",
    "ended_at",
)
"""Columns of a workflow behind its id, its tenant and its owner."""
PHASE_TASK = ("phase", "task_id", "agent", "is_executed", "state", "created_at", "ended_at")
"""Columns of a task of a phase beside its result."""
BATCH = (
    "operation",
    "agent",
    "address",
    "state",
    "size",
    "max_concurrent",
    "batch_size",
    "optimization",
    "cursor",
    "due_at",
    "created_at",
)
"""Columns of a batch behind its id, its tenant and its owner."""
BATCH_ITEM = ("place", "about", "task_id", "state", "error")
"""Columns of an item of a batch."""
MEMORY = ("namespace", "key", "size", "version", "author", "task_id", "created_at", "updated_at", "expires_at")
"""Columns of an entry of the memory behind its id, its tenant and its owner."""
USAGE = ("correlation_id", "channel", "task_id", "outcome", "skipped", "created_at")
"""Columns of the usage behind its id, its tenant and its owner."""
