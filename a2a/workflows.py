"""Workflows: the five phases of SPARC, their order, and the requests and documents of the methods on them."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from msgspec import Struct

from a2a.requests import Request, SendMessage, StreamMessage
from a2a.states import TaskState
from a2a.types import Json, Message


class Phase(StrEnum):
    """A phase of a workflow, in the order of the phases."""

    SPECIFICATION = "specification"
    PSEUDOCODE = "pseudocode"
    ARCHITECTURE = "architecture"
    REFINEMENT = "refinement"
    COMPLETION = "completion"


PHASES: tuple[Phase, ...] = tuple(Phase)
"""The phases in their order."""
MAX_CONFIGURATION = 65_536
"""Characters of the configuration of a workflow, with all that was added to it."""


class WorkflowState(StrEnum):
    """The state of a workflow."""

    ACTIVE = "active"
    COMPLETED = "completed"
    """Its last phase has a result."""
    CANCELED = "canceled"
    """An operator ended it."""


class PhaseState(StrEnum):
    """The state of one phase of a workflow, which its tasks decide."""

    PENDING = "pending"
    ACTIVE = "active"
    COMPLETED = "completed"
    FAILED = "failed"


def following(phase: Phase) -> Phase | None:
    """Return the phase after another one; None after the last."""
    place = PHASES.index(phase) + 1
    return PHASES[place] if place < len(PHASES) else None


def may_enter(current: Phase | None, requested: Phase) -> bool:
    """Return whether a workflow in the current phase may enter the requested one.

    A workflow begins with the first phase. It may stay in its phase, go on to the next one, and go back to any earlier
    one. It never skips a phase.
    """
    reached = -1 if current is None else PHASES.index(current)
    return PHASES.index(requested) <= reached + 1


class SendInPhase(SendMessage, frozen=True, kw_only=True):
    """Send an agent a message that names a phase or a workflow. The agent that has the phase gets it, and the result of
    its task is the workflow's.
    """

    phase: Phase | None = None
    """The phase; None for the phase of the workflow."""
    workflow: str | None = None
    """The caller's name of the workflow; None for a message that belongs to none."""


class StreamInPhase(StreamMessage, frozen=True, kw_only=True):
    """Send an agent a message that names a phase or a workflow, and follow its task."""

    streaming: ClassVar[bool] = True

    phase: Phase | None = None
    """The phase; None for the phase of the workflow."""
    workflow: str | None = None
    """The caller's name of the workflow; None for a message that belongs to none."""


class SetPhase(Request, frozen=True, kw_only=True):
    """Have a workflow enter a phase: the next one, an earlier one, or the one that it is in. A workflow that is not
    there yet begins with the first phase.
    """

    changes: ClassVar[bool] = True

    workflow: str
    phase: Phase
    agent_types: tuple[str, ...] | None = None
    """Names of agents or ids of skills that are preferred in the phases from now on; None to leave them as they are."""
    configuration: Json | None = None
    """Members to add to the configuration of the workflow."""


class ExecuteWorkflow(Request, frozen=True, kw_only=True):
    """Run one phase of a workflow, or all phases from its current one on, each when the one before has completed. The
    execution goes on by itself. Calling it again while it runs changes nothing.
    """

    changes: ClassVar[bool] = True

    workflow: str
    phase: Phase | None = None
    """The only phase to run; None for the current one and all after it."""
    message: Message | None = None
    """The message to the agents of the phases; None for that of the execution before."""
    agent_types: tuple[str, ...] | None = None
    configuration: Json | None = None


class GetWorkflow(Request, frozen=True, kw_only=True):
    """Return a workflow as it is now: its phases, the tasks and the results of each, and its metrics."""

    workflow: str


class GetCapabilities(Request, frozen=True, kw_only=True):
    """Return what an agent can do: its skills, the phases that it has, and the limits that hold for this caller."""


class PhaseTaskDocument(Struct, frozen=True, kw_only=True):
    """A task of a workflow."""

    task_id: str
    agent: str
    state: TaskState
    created_at: datetime
    ended_at: datetime | None = None


class PhaseDocument(Struct, frozen=True, kw_only=True):
    """A phase of a workflow with its tasks."""

    phase: Phase
    state: PhaseState
    tasks: tuple[PhaseTaskDocument, ...] = ()
    artifacts: str | None = None
    """The artifacts of its last completed task as JSON of A2A 1.0: the result of the phase; None without one."""
    result_task_id: str | None = None
    """The task with this result."""


class WorkflowDocument(Struct, frozen=True, kw_only=True):
    """A workflow with its phases."""

    name: str
    state: WorkflowState
    phase: Phase
    phases: tuple[PhaseDocument, ...]
    created_at: datetime
    updated_at: datetime
    agent_types: tuple[str, ...] = ()
    configuration: Json | None = None
    runs_until: Phase | None = None
    """The last phase of its execution; None while it is not executed."""
    reason: str = ""
    """Why its last execution stopped before its end."""


class CapabilitiesDocument(Struct, frozen=True, kw_only=True):
    """The capabilities of an agent."""

    name: str
    version: str
    skills: tuple[str, ...]
    """The ids of its skills that the caller may use."""
    phases: tuple[Phase, ...]
    """The phases that agents of this server have, and that the caller may use."""
    input_modes: tuple[str, ...]
    output_modes: tuple[str, ...]
    streaming: bool
    push_notifications: bool
    task_seconds: float
    """The time limit of one attempt at a task."""
