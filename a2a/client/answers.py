"""Results that no server has as a value: pages of lists, and a shared stream as a client sees it."""

from datetime import datetime

from msgspec import Struct

from a2a.shared_streams import SharedStreamState
from a2a.types import Json, PushConfig, Task


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
