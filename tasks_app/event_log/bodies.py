"""Makes bodies of deliveries from the log. The log never changes, so that every attempt sends the same body.

The sender has them made one after the other on a lane of their own, so that no writer waits for a fold. A task is
folded from where its last body left it, not from its first event for each body.
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import Self

from django.db import DatabaseError, InterfaceError
from msgspec import Struct

from a2a.dialects.json.json_1_0 import document, event_of, task_of
from a2a.documents import EventDocument, TaskDocument
from a2a.events import fold
from a2a.languages import push_of
from a2a.notices import EVERYTHING, with_notice
from a2a.types import Task as TaskValue
from tasks_app.database.work import Work
from tasks_app.event_log.read import read_snapshot
from tasks_app.event_log.read_events import stored_event
from tasks_app.models import Event, Task
from tasks_app.off_loop import LARGE, Pace, switches

log = logging.getLogger(__name__)
CACHE_SIZE = 8_388_608
"""Characters of the logs whose folds are cached for their next bodies, at most, with OVERHEAD for each fold."""
OVERHEAD = 2_000
"""Characters that a fold of an empty log would count as. Its objects take memory, however short their texts are."""


class NoBody(Exception):
    """The event has no body in the language. The log of the process says why."""


class Unwanted(NoBody):
    """The filter of the webhook does not let the event pass. It did when the delivery was written."""


class MakeBody(Work[bytes], Struct, frozen=True, kw_only=True):
    """A request for the body of the delivery of an event."""

    lane = "bodies"
    repeatable = True

    task_id: str
    seq: int
    language: str
    notices: int | None = None
    """The filter of the webhook."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[bytes | Exception]:
        return make_bodies(items)


class Fold(Struct, frozen=True):
    """A task as of an event, and how many characters of log it was folded from."""

    task: TaskValue
    seq: int
    size: int


class Folds:
    """A cache of folds, one for each task, that drops the oldest."""

    def __init__(self, most: int = CACHE_SIZE) -> None:
        self.most = most
        self.size = 0
        self.tasks: OrderedDict[str, Fold] = OrderedDict()
        self.lock = threading.Lock()

    def find(self, task_id: str, seq: int) -> Fold | None:
        """Return the fold of a task as of the event or an earlier one."""
        with self.lock:
            fold = self.tasks.get(task_id)
        return fold if fold is not None and fold.seq <= seq else None

    def keep(self, task_id: str, fold: Fold) -> None:
        """Cache a fold in the place of an earlier one."""
        with self.lock:
            if (before := self.tasks.pop(task_id, None)) is not None:
                self.size -= before.size + OVERHEAD
            self.tasks[task_id] = fold
            self.size += fold.size + OVERHEAD
            while self.size > self.most:
                self.size -= self.tasks.popitem(last=False)[1].size + OVERHEAD


_folds = Folds()


def make_bodies(items: Sequence[MakeBody]) -> list[bytes | Exception]:
    """Return the body of each item, or NoBody. An error of one harms no other.

    Some languages send the whole task with each change, which takes long for a large one.
    """
    bodies: list[bytes | Exception] = []
    with switches.often():
        for item in items:
            pace = Pace()
            body = _body(item)
            if isinstance(body, bytes) and len(body) > LARGE:
                pace.rest()
            bodies.append(body)
    return bodies


def _body(item: MakeBody) -> bytes | NoBody:
    try:
        if (body := body_of(item, _folds)) is not None:
            return body
        if item.notices is not None:
            return Unwanted("Its webhook was registered again, for other events.")
        log.error("event %s/%d has no body in %s", item.task_id, item.seq, item.language)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        log.exception("event %s/%d cannot be encoded in %s", item.task_id, item.seq, item.language)
    return NoBody(f"The body of event {item.seq} cannot be made. See the log of the process that tried.")


def body_of(item: MakeBody, folds: Folds | None = None) -> bytes | None:
    """Return the body; None for an event that the language does not push, or that the filter does not let pass.

    Without the cache of the lane the task is folded for this body alone.

    Raises LookupError if the log does not have the event.
    """
    event, agent = _event(item)
    push, _ = push_of(item.language)
    if push.filters:
        passed = with_notice(event, EVERYTHING if item.notices is None else item.notices)
        if passed is None:
            return None
        event = passed
    return push.encode(event, lambda: _task_as_of(event, agent, folds))


def _event(item: MakeBody) -> tuple[EventDocument, str]:
    """Return the event, and the agent of its task."""
    columns = ("kind", "payload", "state", "task__context_id", "created_at", "task__agent")
    row = Event.objects.filter(task_id=item.task_id, seq=item.seq).values_list(*columns).first()
    if row is None:
        raise LookupError(f"task {item.task_id} has no event {item.seq}")
    kind, payload, state, context_id, at, agent = row
    return stored_event(item.task_id, context_id, item.seq, kind, payload, state, at), agent


def _task_as_of(event: EventDocument, agent: str, folds: Folds | None) -> TaskDocument:
    base = folds.find(event.task_id, event.seq) if folds else None
    result = _fold_on(event.task_id, event.seq, base or _snapshot(event.task_id, event.seq))
    if folds:
        folds.keep(event.task_id, result)
    return document(result.task, event.seq, agent)


def _snapshot(task_id: str, seq: int) -> Fold | None:
    """Return the stored snapshot unless it is as of a later event, or must not be used."""
    if Task.objects.filter(pk=task_id).values_list("snapshot_seq", flat=True).get() > seq:
        return None
    snapshot, _ = read_snapshot(task_id)
    if not 0 < snapshot.seq <= seq:
        return None
    return Fold(task_of(snapshot), snapshot.seq, snapshot.size)


def _fold_on(task_id: str, seq: int, base: Fold | None) -> Fold:
    task, after, size = (base.task, base.seq, base.size) if base else (None, 0, 0)
    rows = Event.objects.filter(task_id=task_id, seq__gt=after, seq__lte=seq).order_by("seq")
    tail = list(rows.values_list("seq", "kind", "payload"))
    if task is None and not tail:
        raise LookupError(f"task {task_id} has no events")
    size += sum(len(payload) for _, _, payload in tail)
    return Fold(fold(task, (event_of(stored_event(task_id, "", *row, None)) for row in tail)), seq, size)
