"""The tables of workflows: each with its phase, and the tasks of its phases with their results.

Only tasks_app/workflows writes them.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from a2a.states import TaskState
from a2a.workflows import Phase, WorkflowState
from tasks_app.models.callers import Principal, Tenant


class Workflow(models.Model):
    """A workflow of one owner, and how far its execution shall go."""

    PHASES: ClassVar = [(phase.value, phase.value) for phase in Phase]
    STATES: ClassVar = [(state.value, state.value) for state in WorkflowState]

    id = models.CharField(max_length=36, primary_key=True)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+")
    owner = models.ForeignKey(Principal, models.PROTECT, related_name="+")
    name = models.CharField(max_length=128, help_text="The owner's name of it.")
    address = models.CharField(
        max_length=64, null=True, help_text="The agent of the address where it began; null: that of the whole server."
    )
    state = models.CharField(max_length=16, choices=STATES)
    phase = models.CharField(max_length=16, choices=PHASES)
    context_id = models.CharField(max_length=128, help_text="The context of its tasks, which share a conversation.")
    agent_types = models.TextField(default="[]", db_default="[]", help_text="Agents and skills that it prefers.")
    configuration = models.TextField(default="{}", db_default="{}", help_text="The JSON object of its caller.")
    runs_until = models.CharField(
        max_length=16, null=True, choices=PHASES, help_text="The last phase of its execution; null without one."
    )
    message = models.TextField(default="", db_default="", help_text="The A2A 1.0 JSON of the parts for its agents.")
    scopes = models.TextField(default="", db_default="", help_text="The scopes of the call that executed it.")
    reason = models.TextField(default="", db_default="", help_text="Why its last execution stopped, or its end.")
    due_at = models.DateTimeField(null=True, help_text="When any process may begin its next task; null: not yet.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "tenant"

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["owner", "name"], name="workflow_name")]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="workflow_due", condition=Q(due_at__isnull=False)),
            # Lists of operators, the newest first, by state or within the tenants that an operator reaches.
            models.Index(fields=["state", "-id"], name="workflow_by_state"),
            models.Index(fields=["tenant", "-id"], name="workflow_by_tenant"),
        ]

    def __str__(self) -> str:
        return self.name


class PhaseTask(models.Model):
    """A task of a phase of a workflow. Its end is written once, with the result."""

    STATES: ClassVar = [(state.value, state.value) for state in TaskState]

    workflow = models.ForeignKey(Workflow, models.CASCADE, related_name="tasks")
    phase = models.CharField(max_length=16, choices=Workflow.PHASES)
    task_id = models.CharField(max_length=36, unique=True)
    agent = models.CharField(max_length=64)
    is_executed = models.BooleanField(default=False, db_default=False, help_text="Whether an execution began it.")
    state = models.CharField(max_length=16, null=True, choices=STATES, help_text="The state it ended in, if it has.")
    artifacts = models.TextField(null=True, help_text="The A2A 1.0 JSON of the artifacts of a completed task.")
    created_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "workflow__tenant"

    class Meta:
        verbose_name = "task of a phase"
        verbose_name_plural = "tasks of phases"
        indexes: ClassVar = [
            models.Index(fields=["workflow"], name="phase_task_open", condition=Q(ended_at__isnull=True))
        ]

    def __str__(self) -> str:
        return f"{self.task_id} in {self.phase}"
