"""The memory of a stream: its task so far, by which it finds what is new in the next event."""

from collections.abc import Iterator

from msgspec.structs import replace

from a2a.client.news import news
from a2a.client.reading import UNDATED
from a2a.client.updates import Update
from a2a.events import ArtifactAdded, StatusChanged, continues, fold
from a2a.states import TaskState
from a2a.types import Message, Part, Status, Task

_DIGITS = 9
"""Digits of the ids that count events. Longer ones are times, of which several events may have the same."""


class Numbers:
    """The ids of a stream. While they count its events one by one, a smaller one is that of an earlier event."""

    def __init__(self) -> None:
        self._last = -1
        """The last number; negative before the first."""
        self._count = True
        """Whether all ids so far count events, as far as they tell."""
        self._proven = False
        """Whether at least one id was the successor of the one before."""
        self.went_back = False
        """Whether a resumed stream began with a smaller id: its server counts anew, or sends earlier events again."""

    def repeat(self, text: str, *, first: bool) -> bool:
        """Note the id of an event. Return whether it is that of an earlier event, or of the last.

        `first` marks the first event of a resumed stream, which may have the id of the last event.
        """
        number = int(text) if text.isdecimal() and len(text) <= _DIGITS else -1
        if self._count and self._proven and not first and 0 <= number <= self._last:
            return True
        self.went_back = self.went_back or (first and 0 <= number < self._last)
        if self._last >= 0:
            step = number - self._last
            self._proven = self._proven or step == 1
            self._count = self._count and (step == 1 or (first and step == 0))
        self._last = number
        return False


class Memory:
    """The task of a stream, as of its last event."""

    def __init__(self, last_id: str | None, task: Task | None = None) -> None:
        self.last_id = last_id
        """The id of the last event."""
        self.update: Update | None = None
        """The last update."""
        if task is not None:
            self.update = Update(event=task, task_id=task.id, context_id=task.context_id, id=last_id)
        self.state: TaskState | None = task.status.state if task else None
        self.has_gap = False
        """Whether the stream was resumed without ids, or by ids that went back, so that events may be there twice."""
        self._tails: dict[str, Part] = {}
        """The last part of each artifact as of the last such resumption, until the artifact gets its next piece."""
        self._task: Task | None = task
        self._later: list[StatusChanged | ArtifactAdded] = []
        """Events after `_task`; folding each at once would take quadratic time."""
        self._numbers = Numbers()

    @property
    def task(self) -> Task | None:
        """The task as of the last update; None before the first, and for a direct reply."""
        if self._task is not None and self._later:
            self._task, self._later = fold(self._task, self._later), []
        return self._task

    def take(self, update: Update, *, first: bool) -> Iterator[Update]:
        """Yield the new part of an update. `first` marks the first event of a resumed stream."""
        if self._is_repeated(update, first=first):
            return
        self.has_gap = self.has_gap or self._numbers.went_back
        if self._task is None:
            yield from self._keep(update)
        elif isinstance(update.event, Task):
            # A server that resumes begins with the task as of the last event, which contains nothing new.
            if not (first and update.id is not None and update.id == self.last_id):
                yield from self._compared(update, update.event)
        elif not self._is_there(update):
            yield from self._keep(update)

    def _is_repeated(self, update: Update, *, first: bool) -> bool:
        """Return whether a server sends an event again. An event without an id seems to have that of the one before."""
        if update.id is None or not self._numbers.repeat(update.id, first=first):
            return False
        return update.id != self.last_id or (self.update is not None and update.event == self.update.event)

    def _compared(self, update: Update, snapshot: Task) -> Iterator[Update]:
        """Yield the difference between the task so far and a snapshot of it."""
        for change in tuple(news(self.task or snapshot, snapshot)):
            yield from self._keep(replace(update, event=change))
        self.last_id = update.id or self.last_id
        if update.id is None:
            self.has_gap = True
            self._tails = {one.artifact_id: one.parts[-1] for one in snapshot.artifacts if one.parts}

    def _is_there(self, update: Update) -> bool:
        """Return whether the task so far has the event already: as its status, or as the end of an artifact."""
        match update.event:
            case StatusChanged(status=status):
                return status == self._status
            case ArtifactAdded(artifact=artifact, append=True):
                last = self._tails.pop(artifact.artifact_id, None)
                return last is not None and artifact.parts != () and ends_with(last, artifact.parts)
            case _:
                return False

    def _keep(self, update: Update) -> Iterator[Update]:
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


def ends_with(part: Part, piece: tuple[Part, ...]) -> bool:
    """Return whether a part is the piece, or a text that ends with it."""
    if len(piece) != 1:
        return False
    return piece[0] == part or (continues(part, piece[0]) and (part.text or "").endswith(piece[0].text or "\0"))


def _empty(update: Update) -> Task:
    """Return an empty task for its first event: streams of 0.x need not begin with the task."""
    status = Status(state=TaskState.WORKING, timestamp=UNDATED)
    return Task(id=update.task_id, context_id=update.context_id, status=status)
