"""The results of operations, which languages encode: tasks, messages, pages, cards, and the events of a stream."""

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from a2a.documents import EventDocument, TaskDocument
from a2a.errors import Error
from a2a.memory import MemoryDeletion, MemoryDocument, MemoryPage
from a2a.money import Cost
from a2a.shared_streams import ChunkReceipt, SharedStreamDocument
from a2a.types import Card, Json, Message, PushConfig
from a2a.workflows import CapabilitiesDocument, WorkflowDocument


class TaskPage(Struct, frozen=True, kw_only=True):
    """One page of a list of tasks."""

    tasks: tuple[TaskDocument, ...]
    next_page_token: str
    """Empty on the last page."""
    total_size: int
    """Number of tasks on all pages, exact up to 1,000."""
    history_length: int | None = None
    """Number of newest messages to include with each task; None for all."""
    include_artifacts: bool = False
    """True if the caller requested artifacts, so that an empty list is shown too."""


class Answer(Struct, frozen=True, kw_only=True):
    """A task or a message: exactly one of them is set."""

    task: TaskDocument | None = None
    message: Message | None = None
    history_length: int | None = None
    """Number of newest messages to include with the task; None for all."""


class CardAnswer(Struct, frozen=True, kw_only=True):
    """A card for one caller."""

    card: Card
    sign: Callable[[Json], Json]
    """Returns an encoded card with its signatures."""


class PushConfigPage(Struct, frozen=True, kw_only=True):
    """One page of the webhooks of a task."""

    configs: tuple[PushConfig, ...]
    next_page_token: str
    """Empty on the last page."""


class Description(Struct, frozen=True, kw_only=True):
    """A description of what can be asked, as JSON."""

    body: bytes
    etag: str


class Offer(Struct, frozen=True, kw_only=True):
    """The part of an agreement about one capability."""

    capability: str
    agent: str = ""
    """The name of the agent that has it; empty for a capability that is refused without naming one."""
    cost: Cost | None = None
    """The expected cost of a call; None for an agent without a cost."""
    refusal: type[Error] | None = None
    """The error that a call would get; None if it would be accepted."""
    is_limited: bool = False
    """True if the budget covers the minimum expected cost, but not the maximum."""


class Agreement(Struct, frozen=True, kw_only=True):
    """The outcome of a negotiation."""

    offers: tuple[Offer, ...]
    budget: int | None = None
    """The budget of the caller, in millionths of a dollar."""

    @property
    def outcome(self) -> Literal["agreement", "degradation", "refusal"]:
        """Everything as asked for, a part of it, or nothing."""
        grants = [offer for offer in self.offers if offer.refusal is None]
        if not grants:
            return "refusal"
        is_whole = len(grants) == len(self.offers) and not any(offer.is_limited for offer in grants)
        return "agreement" if is_whole else "degradation"


Result = (
    Answer
    | TaskPage
    | CardAnswer
    | PushConfig
    | PushConfigPage
    | Description
    | SharedStreamDocument
    | ChunkReceipt
    | MemoryDocument
    | MemoryPage
    | MemoryDeletion
    | WorkflowDocument
    | CapabilitiesDocument
    | Agreement
    | None
)
"""The result of any operation. Deleting returns None."""
Frame = TaskDocument | EventDocument | Message
"""One event of a stream: the task as of the cursor, an event after the cursor, or a direct reply."""


def size_of(result: Result) -> int:
    """Return the bytes of the tasks of a result, or of what it has of the memory or of a workflow, roughly."""
    match result:
        case TaskPage(tasks=tasks):
            return sum(task.size for task in tasks)
        case Answer(task=task):
            return task.size if task else 0
        case MemoryPage(entries=entries):
            return sum(entry.size for entry in entries)
        case MemoryDocument(size=size):
            return size
        case WorkflowDocument(phases=phases):
            return sum(len(phase.artifacts or "") for phase in phases)
        case _:
            return 0


def outline_of(result: Result) -> Json | None:
    """Return what an answer about the memory or a workflow is about, without values and results; None for others."""
    match result:
        case MemoryPage(entries=entries):
            return {"entries": [_name(entry) for entry in entries]}
        case MemoryDocument():
            return _name(result)
        case WorkflowDocument(name=name, state=state, phase=phase, phases=phases):
            results = [one.result_task_id for one in phases if one.result_task_id]
            return {"workflowId": name, "state": state.value, "phase": phase.value, "results": results}
        case _:
            return None


def _name(entry: MemoryDocument) -> Json:
    return {"namespace": entry.namespace, "key": entry.key, "version": entry.version}
