"""Pages of results."""

from msgspec import Struct

from a2a.types import PushConfig, Task


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
