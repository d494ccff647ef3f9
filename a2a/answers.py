"""The results of operations, which languages encode: tasks, messages, pages, cards, and the events of a stream."""

from collections.abc import Callable

from msgspec import Struct

from a2a.documents import EventDocument, TaskDocument
from a2a.types import Card, Json, Message, PushConfig


class TaskPage(Struct, frozen=True, kw_only=True):
    """One page of a list."""

    tasks: tuple[TaskDocument, ...]
    next_page_token: str
    """Empty on the last page."""
    total_size: int
    history_length: int | None = None
    include_artifacts: bool = False


class Answer(Struct, frozen=True, kw_only=True):
    """A task or a message, with how much of the history the caller asked for."""

    task: TaskDocument | None = None
    message: Message | None = None
    history_length: int | None = None


class CardAnswer(Struct, frozen=True, kw_only=True):
    """A card for one caller."""

    card: Card
    sign: Callable[[Json], Json]
    """Takes the card as one dialect encodes it, and returns it with its signatures."""


class PushConfigPage(Struct, frozen=True, kw_only=True):
    """One page of the webhooks of a task."""

    configs: tuple[PushConfig, ...]
    next_page_token: str
    """Empty on the last page."""


Result = Answer | TaskPage | CardAnswer | PushConfig | PushConfigPage | None
"""The result of any operation; deleting gives None."""
Frame = TaskDocument | EventDocument | Message
"""One event of a stream: the task as of the cursor, an event after it, or the only reply."""
