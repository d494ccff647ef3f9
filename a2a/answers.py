"""The results of operations, which languages encode: tasks, messages, pages, cards, and the events of a stream."""

from collections.abc import Callable

from msgspec import Struct

from a2a.documents import EventDocument, TaskDocument
from a2a.shared_streams import ChunkReceipt, SharedStreamDocument
from a2a.types import Card, Json, Message, PushConfig


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


Result = (
    Answer
    | TaskPage
    | CardAnswer
    | PushConfig
    | PushConfigPage
    | Description
    | SharedStreamDocument
    | ChunkReceipt
    | None
)
"""The result of any operation. Deleting returns None."""
Frame = TaskDocument | EventDocument | Message
"""One event of a stream: the task as of the cursor, an event after the cursor, or a direct reply."""


def size_of(result: Result) -> int:
    """Return the bytes of the tasks of a result, roughly."""
    tasks = result.tasks if isinstance(result, TaskPage) else [result.task] if isinstance(result, Answer) else []
    return sum(task.size for task in tasks if task)
