"""The tables of tasks, with their events, runs and files. Only event_log writes tasks and events."""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from a2a.states import TaskState
from tasks_app.models.callers import Principal, Tenant

STATES = [(state.value, state.value.replace("_", " ")) for state in TaskState]


class Task(models.Model):
    """A task as of its last event, with a snapshot of its artifacts and history as of snapshot_seq."""

    id = models.CharField(max_length=36, primary_key=True)
    # Without a constraint in the database: its trigger would look up and lock the owner's row for every new task.
    tenant = models.ForeignKey(Tenant, models.PROTECT, db_constraint=False, db_index=False)
    owner = models.ForeignKey(Principal, models.PROTECT, db_constraint=False, db_index=False, related_name="tasks")
    context_id = models.CharField(max_length=255)
    agent = models.CharField(max_length=64)
    state = models.CharField(max_length=16, choices=STATES)
    status = models.TextField(help_text="The 1.0 JSON of the status, with its message.")
    status_at = models.DateTimeField()
    last_seq = models.PositiveIntegerField()
    metadata = models.TextField(null=True)
    wants = models.TextField(
        default="", db_default="", help_text="JSON: the caller and the preferences of the newest message."
    )
    snapshot_seq = models.PositiveIntegerField()
    joined_seq = models.IntegerField(null=True, help_text="The snapshot_seq, if appended text is one part in it.")
    snapshot_status = models.TextField(help_text="The status as of snapshot_seq.")
    artifacts = models.TextField(help_text="As of snapshot_seq.")
    history = models.TextField(help_text="As of snapshot_seq.")
    queue = models.CharField(max_length=64, default="default")
    priority = models.SmallIntegerField(default=0, help_text="Higher goes first.")
    timeout = models.FloatField(help_text="Seconds that one attempt may take.")
    max_attempts = models.PositiveSmallIntegerField(default=1)
    attempt = models.PositiveSmallIntegerField(
        default=0, db_column="tries", help_text="How many times its agent was called for the newest message."
    )
    not_before = models.DateTimeField(null=True, help_text="The end of the pause between two attempts.")
    message_seq = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The event of the newest message; 0: the first, or none that counted them."
    )
    fence = models.PositiveIntegerField(
        default=0, db_column="attempt", help_text="The number of its newest claim: writes under another are refused."
    )
    run_seq = models.PositiveIntegerField(
        null=True, help_text="The last event that the newest run wrote, or was claimed with."
    )
    lease_owner = models.CharField(max_length=64, null=True)
    lease_until = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    pushes = models.BooleanField(
        default=False, db_default=False, help_text="It has webhooks, so that its events are written with deliveries."
    )
    size = models.BigIntegerField(default=0, db_default=0, help_text="Characters of the payloads of its events.")
    messages = models.PositiveIntegerField(default=0, db_default=0, help_text="Messages of its caller.")
    budget = models.BigIntegerField(
        null=True, help_text="The most that its caller lets it cost, in millionths of a dollar; null: no limit."
    )
    share = models.BigIntegerField(
        null=True,
        help_text="The most that it may cost, in millionths of a dollar, because its stored budgets had less left than "
        "the maximum of its next run; null: they had that much.",
    )
    spent = models.BigIntegerField(
        default=0, db_default=0, help_text="What its runs have reported, in millionths of a dollar."
    )
    reserved = models.BigIntegerField(
        default=0, db_default=0, help_text="What stored budgets hold for it until it ends, in millionths of a dollar."
    )
    created_at = models.DateTimeField()

    tenant_path: ClassVar = "tenant"
    agent_path: ClassVar = "agent"

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["owner", "state", "-status_at", "id"], name="task_by_state"),
            models.Index(fields=["owner", "context_id", "state", "-status_at", "id"], name="task_by_context"),
            models.Index(fields=["owner", "agent", "state", "-status_at", "id"], name="task_by_agent"),
            # The queue and agent of a worker come first, so that a claim reads no task that it cannot take. Then comes
            # the owner, because claims take turns between owners.
            models.Index(
                fields=["queue", "agent", "owner", "-priority", "created_at", "not_before"],
                name="task_turn",
                condition=Q(state=TaskState.SUBMITTED.value),
            ),
            models.Index(
                fields=["agent", "owner", "created_at"], name="task_working", condition=Q(state=TaskState.WORKING.value)
            ),
            models.Index(
                fields=["status_at"],
                name="task_asked",
                condition=Q(state__in=[TaskState.INPUT_REQUIRED.value, TaskState.AUTH_REQUIRED.value]),
            ),
            models.Index(fields=["lease_until"], name="task_leased", condition=Q(lease_until__isnull=False)),
            models.Index(fields=["state", "id"], name="task_state", condition=~Q(state=TaskState.COMPLETED.value)),
        ]

    def __str__(self) -> str:
        return self.id


class Event(models.Model):
    """One change of one task, numbered without gaps. The payload is A2A 1.0 JSON without taskId and contextId."""

    pk = models.CompositePrimaryKey("task_id", "seq")
    task = models.ForeignKey(Task, models.CASCADE, db_constraint=False, db_index=False, related_name="events")
    seq = models.PositiveIntegerField()
    fence = models.PositiveIntegerField(
        default=0, db_column="attempt", help_text="The fence of the run that wrote it; 0 where no run did."
    )
    kind = models.CharField(max_length=16, help_text="The member of a 1.0 StreamResponse.")
    state = models.CharField(max_length=16, null=True, choices=STATES, help_text="The state it sets, if any.")
    size = models.PositiveIntegerField(default=0, help_text="Characters of the payload, so that it need not be read.")
    payload = models.TextField()
    actor = models.CharField(max_length=64, help_text="The actor: caller, agent, sweeper, runner, or operator:NAME.")
    exchange_id = models.CharField(
        max_length=36, null=True, help_text="The exchange of the call that caused it, if a call did."
    )
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.task_id}/{self.seq}"


class File(models.Model):
    """A large part of a message or artifact. Its bytes are in the storage; see files/."""

    id = models.CharField(max_length=41, primary_key=True, help_text="The day, which is their folder, and a digest.")
    holder = models.CharField(
        max_length=36, help_text="The task or direct reply it belongs to; empty when that is gone."
    )
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=255)
    size = models.PositiveBigIntegerField()
    digest = models.CharField(max_length=64, help_text="SHA-256 of the bytes.")
    created_at = models.DateTimeField()

    class Meta:
        indexes: ClassVar = [models.Index(fields=["holder"], name="file_holder")]

    def __str__(self) -> str:
        return self.id


class Run(models.Model):
    """One finished run of an agent. A run under way has no row; the task's lease stands for it."""

    task = models.ForeignKey(Task, models.CASCADE, db_constraint=False, related_name="runs")
    fence = models.PositiveIntegerField(db_column="number", help_text="The fence that its claim gave it.")
    worker = models.CharField(max_length=64)
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField()
    outcome = models.CharField(
        max_length=16, help_text="A state, or lost, interrupted, cut off, released, overdue, continued."
    )
    reference = models.CharField(
        max_length=32, default="", help_text="The reference that the caller got in place of the cause."
    )
    traceback = models.TextField(default="", help_text="For operators only.")

    class Meta:
        indexes: ClassVar = [models.Index(fields=["reference"], name="run_reference", condition=~Q(reference=""))]

    def __str__(self) -> str:
        return f"{self.task_id} fence {self.fence}"


class DirectReply(models.Model):
    """A message and its answer without a task, kept for the conversation."""

    id = models.CharField(max_length=36, primary_key=True)
    owner = models.ForeignKey(Principal, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    context_id = models.CharField(max_length=255)
    message = models.TextField()
    reply = models.TextField()
    created_at = models.DateTimeField(db_index=True)

    class Meta:
        # The name that processes of the version before write to; so with the column `turn_id` of the keys.
        db_table = "tasks_app_turn"
        indexes: ClassVar = [models.Index(fields=["owner", "context_id", "created_at"], name="turn_context")]

    def __str__(self) -> str:
        return self.id


class IdempotencyKey(models.Model):
    """The id of an accepted message. The same message sent again gets the same outcome."""

    pk = models.CompositePrimaryKey("owner_id", "key")
    owner = models.ForeignKey(Principal, models.CASCADE, db_constraint=False, db_index=False, related_name="+")
    key = models.CharField(max_length=255, help_text="The message id, or its SHA-256 when it is longer.")
    fingerprint = models.CharField(max_length=64, help_text="SHA-256 of the content.")
    task_id = models.CharField(max_length=36, null=True)
    turn_id = models.CharField(max_length=36, null=True, help_text="The direct reply, for a message without a task.")
    created_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.key
