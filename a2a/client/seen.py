"""The memory of a stream: its task so far, and so the news in its next event."""

from collections.abc import Iterator

from msgspec.structs import replace

from a2a.client.news import news
from a2a.client.reading import UNDATED
from a2a.client.updates import Update
from a2a.events import ArtifactAdded, StatusChanged, fold
from a2a.states import TaskState
from a2a.types import Message, Status, Task


class Seen:
    """The task as its stream has told it."""

    def __init__(self, last_id: str | None) -> None:
        self.last_id = last_id
        """The id of the last event."""
        self.update: Update | None = None
        """The last update."""
        self.state: TaskState | None = None
        self._task: Task | None = None
        self._later: list[StatusChanged | ArtifactAdded] = []
        """Events after `_task`; folding each at once would take quadratic time."""

    @property
    def task(self) -> Task | None:
        """The task as of the last update; None before the first, and for a bare reply."""
        if self._task is not None and self._later:
            self._task, self._later = fold(self._task, self._later), []
        return self._task

    def take(self, update: Update, *, first: bool) -> Iterator[Update]:
        """Yield what is new. `first` is the first event of a stream that was taken up again."""
        resumed = first and update.id is not None and update.id == self.last_id
        if self._task is None:
            yield from self._kept(update)
        elif isinstance(update.event, Task):
            # A server that resumes begins with the task as of the last event: all of it is there already.
            changes = () if resumed else tuple(news(self.task or self._task, update.event))
            for change in changes:
                yield from self._kept(replace(update, event=change))
            self.last_id = update.id or self.last_id
        elif not (isinstance(update.event, StatusChanged) and update.event.status == self._status):
            yield from self._kept(update)

    def _kept(self, update: Update) -> Iterator[Update]:
        self.update = update
        self.last_id = update.id or self.last_id
        self.state = update.state or self.state
        match update.event:
            case Task() as task:
                self._task, self._later = task, []
            case StatusChanged() | ArtifactAdded() as event:
                self._task = self._task or _empty(update)
                self._later.append(event)
            case Message():
                pass
        yield update

    @property
    def _status(self) -> Status | None:
        for event in reversed(self._later):
            if isinstance(event, StatusChanged):
                return event.status
        return self._task.status if self._task else None


def _empty(update: Update) -> Task:
    """Return a task of which nothing is told but an event: streams of 0.x need not begin with the task."""
    status = Status(state=TaskState.WORKING, timestamp=UNDATED)
    return Task(id=update.task_id, context_id=update.context_id, status=status)
