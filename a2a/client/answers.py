"""Results that no server has as a value: pages of lists, a shared stream and a workflow as a client sees them."""

from datetime import datetime

from msgspec import Struct

from a2a.shared_streams import SharedStreamState
from a2a.types import Artifact, Json, PushConfig, Task
from a2a.workflows import Phase, PhaseState, PhaseTaskDocument, WorkflowState


class TaskPage(Struct, frozen=True, kw_only=True):
    """One page of a list of tasks."""

    tasks: tuple[Task, ...]
    next_page_token: str
    """Empty on the last page."""
    total_size: int | None = None
    """The number of tasks on all pages, if the server tells it."""


class ConfigPage(Struct, frozen=True, kw_only=True):
    """One page of the webhooks of a task."""

    configs: tuple[PushConfig, ...]
    next_page_token: str
    """Empty on the last page."""


class SharedStream(Struct, frozen=True, kw_only=True):
    """A conversation of several participants, as it is when the server answers."""

    id: str
    state: SharedStreamState
    participants: tuple[str, ...]
    created_at: datetime
    closed_at: datetime | None = None
    metadata: Json | None = None


class WorkflowPhase(Struct, frozen=True, kw_only=True):
    """A phase of a workflow."""

    phase: Phase
    state: PhaseState
    tasks: tuple[PhaseTaskDocument, ...] = ()
    result_task_id: str | None = None
    """The task with the result of the phase; None without a result."""
    artifacts: tuple[Artifact, ...] = ()
    """The result of the phase."""


class Workflow(Struct, frozen=True, kw_only=True):
    """A workflow of SPARC, as it is when the server answers."""

    name: str
    state: WorkflowState
    phase: Phase
    phases: tuple[WorkflowPhase, ...]
    created_at: datetime
    updated_at: datetime
    agent_types: tuple[str, ...] = ()
    configuration: Json
    metrics: Json
    runs_until: Phase | None = None
    """The last phase of its execution; None while it is not executed."""
    reason: str = ""
    """Why its last execution stopped before its end."""
