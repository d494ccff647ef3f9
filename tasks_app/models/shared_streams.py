"""The tables of shared streams: their participants, the log of their chunks, and the answers that agents owe them.

Only tasks_app/shared_streams writes them.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from a2a.shared_streams import ChunkRole, SharedStreamState
from tasks_app.models.callers import Principal, Tenant


class SharedStream(models.Model):
    """A conversation of several participants, as of its last chunk."""

    STATES: ClassVar = [(state.value, state.value) for state in SharedStreamState]

    id = models.CharField(max_length=36, primary_key=True)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    owner = models.ForeignKey(Principal, models.PROTECT, related_name="+")
    state = models.CharField(max_length=16, choices=STATES)
    metadata = models.TextField(null=True, help_text="The JSON object of the caller that began it.")
    last_seq = models.PositiveIntegerField(default=0, db_default=0)
    size = models.BigIntegerField(default=0, db_default=0, help_text="Characters of the parts of its chunks.")
    reason = models.TextField(default="", db_default="", help_text="Why it was paused or closed.")
    created_at = models.DateTimeField()
    active_at = models.DateTimeField(help_text="The time of its last chunk, or of its beginning.")
    closed_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "tenant"

    class Meta:
        verbose_name = "shared stream"
        indexes: ClassVar = [
            models.Index(fields=["owner"], name="shared_open_by_owner", condition=Q(closed_at__isnull=True)),
            models.Index(fields=["active_at"], name="shared_open_by_time", condition=Q(closed_at__isnull=True)),
            # Lists of operators, the newest first, by state or within the tenants that an operator reaches.
            models.Index(fields=["state", "-id"], name="shared_by_state"),
            models.Index(fields=["tenant", "-id"], name="shared_by_tenant"),
        ]

    def __str__(self) -> str:
        return self.id


class Participant(models.Model):
    """An agent or an account that takes part in a shared stream."""

    stream = models.ForeignKey(SharedStream, models.CASCADE, related_name="participants")
    name = models.CharField(max_length=64)
    principal = models.ForeignKey(
        Principal, models.CASCADE, null=True, related_name="+", help_text="The account; null for an agent."
    )

    tenant_path: ClassVar = "stream__tenant"

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["stream", "principal"], name="participant_account"),
            models.UniqueConstraint(
                fields=["stream", "name"], name="participant_agent", condition=Q(principal__isnull=True)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} in {self.stream_id}"


class Chunk(models.Model):
    """One row of the log of a shared stream, numbered without gaps."""

    ROLES: ClassVar = [(role.value, role.value) for role in ChunkRole]

    pk = models.CompositePrimaryKey("stream_id", "seq")
    stream = models.ForeignKey(SharedStream, models.CASCADE, db_index=False, related_name="chunks")
    seq = models.PositiveIntegerField()
    author = models.CharField(max_length=64, help_text="A participant, or sweeper, or operator:NAME.")
    principal = models.ForeignKey(
        Principal, models.SET_NULL, null=True, db_index=False, related_name="+", help_text="The account of the author."
    )
    role = models.CharField(max_length=16, choices=ROLES)
    parts = models.TextField(help_text="The A2A 1.0 JSON of its parts.")
    is_last = models.BooleanField(default=False, db_default=False)
    state = models.CharField(
        max_length=16, null=True, choices=SharedStream.STATES, help_text="The state it sets, if any."
    )
    own_seq = models.BigIntegerField(null=True, help_text="The author's own number of it, if the author gave one.")
    digest = models.CharField(max_length=64, default="", db_default="", help_text="SHA-256 of a chunk with own_seq.")
    task_id = models.CharField(max_length=36, null=True, help_text="The task whose event it was made of, if any.")
    task_seq = models.PositiveIntegerField(null=True, help_text="The number of that event.")
    created_at = models.DateTimeField()

    tenant_path: ClassVar = "stream__tenant"

    class Meta:
        indexes: ClassVar = [
            models.Index(
                fields=["stream", "principal", "own_seq"], name="chunk_own", condition=Q(own_seq__isnull=False)
            )
        ]

    def __str__(self) -> str:
        return f"{self.stream_id}/{self.seq}"


class AgentAnswer(models.Model):
    """The answer of one agent to one message of a shared stream: a task, whose events become chunks."""

    stream = models.ForeignKey(SharedStream, models.CASCADE, related_name="answers")
    seq = models.PositiveIntegerField(help_text="The chunk with the message.")
    agent = models.CharField(max_length=64)
    principal = models.ForeignKey(Principal, models.CASCADE, related_name="+", help_text="The author of the message.")
    scopes = models.TextField(help_text="The scopes of the call that sent the message, separated by spaces.")
    is_limited = models.BooleanField(
        default=False, db_default=False, help_text="The credential of that call is valid for some agents only."
    )
    task_id = models.CharField(max_length=36, null=True, help_text="The task; null before there is one.")
    cursor = models.PositiveIntegerField(
        default=0, db_default=0, help_text="The last event of the task that was made into a chunk, or into none."
    )
    due_at = models.DateTimeField(null=True, help_text="When any process may go on with it; null: it is over.")
    waits_since = models.DateTimeField(
        null=True, help_text="Since when it waits for an earlier answer, a pause or its task; null: it does not wait."
    )

    tenant_path: ClassVar = "stream__tenant"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["stream", "seq", "agent"], name="agent_answer")]
        indexes: ClassVar = [
            models.Index(
                fields=["due_at"],
                name="agent_answer_ready",
                condition=Q(due_at__isnull=False, waits_since__isnull=True),
            ),
            models.Index(
                fields=["stream", "agent", "seq"], name="agent_answer_open", condition=Q(due_at__isnull=False)
            ),
            models.Index(
                fields=["id"], name="agent_answer_waits", condition=Q(due_at__isnull=False, waits_since__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent} to {self.stream_id}/{self.seq}"
