"""Bodies of deliveries, made from the log. The log never changes, so a body is the same with every try.

The sender makes them one behind the other on a lane of their own: no writer waits for a fold, and a task is folded on
from its last body, never from its beginning for each.
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
from a2a.types import Task as TaskValue
from tasks_app.database.work import Work
from tasks_app.event_log.read import event_row, read_snapshot
from tasks_app.models import Event, Task

log = logging.getLogger(__name__)
KEPT_BYTES = 8_388_608
"""Characters of the logs whose tasks are kept, folded, for their next bodies."""


class NoBody(Exception):
    """The event cannot be told in that language; the log of the process says why."""


class MakeBody(Work[bytes], Struct, frozen=True, kw_only=True):
    """The body of the delivery of an event."""

    lane = "bodies"
    repeatable = True

    task_id: str
    seq: int
    language: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[bytes | Exception]:
        return make_bodies(items)


class _Folded(Struct, frozen=True):
    """A task as of an event, and the characters of log that it was folded from."""

    task: TaskValue
    seq: int
    size: int


class Folds:
    """The tasks that were folded last, within a number of bytes."""

    def __init__(self, most: int = KEPT_BYTES) -> None:
        self.most = most
        self.size = 0
        self.tasks: OrderedDict[str, _Folded] = OrderedDict()
        self.lock = threading.Lock()

    def find(self, task_id: str, seq: int) -> _Folded | None:
        """Return the task if it is known as of the event or an earlier one."""
        with self.lock:
            found = self.tasks.get(task_id)
        return found if found is not None and found.seq <= seq else None

    def keep(self, task_id: str, folded: _Folded) -> None:
        with self.lock:
            if (before := self.tasks.pop(task_id, None)) is not None:
                self.size -= before.size
            self.tasks[task_id] = folded
            self.size += folded.size
            while self.size > self.most:
                self.size -= self.tasks.popitem(last=False)[1].size


_folds = Folds()


def make_bodies(items: Sequence[MakeBody]) -> list[bytes | Exception]:
    """Return the body of each. One that cannot be made harms no other."""
    return [_body(item) for item in items]


def _body(item: MakeBody) -> bytes | NoBody:
    try:
        if (body := body_of(item, _folds)) is not None:
            return body
        log.error("event %s/%d has nothing to say in %s", item.task_id, item.seq, item.language)
    except (DatabaseError, InterfaceError):
        raise
    except Exception:
        log.exception("event %s/%d cannot be told in %s", item.task_id, item.seq, item.language)
    return NoBody(f"The body of event {item.seq} cannot be made: the log of the process that tried says why.")


def body_of(item: MakeBody, folds: Folds | None = None) -> bytes | None:
    """Return the body; without folds, which belong to the lane, the task is folded for this body alone.

    Raises LookupError if the log does not have the event.
    """
    event = _event(item)
    push, _ = push_of(item.language)
    return push.encode(event, lambda: _task_as_of(event, folds))


def _event(item: MakeBody) -> EventDocument:
    columns = ("kind", "payload", "state", "task__context_id")
    row = Event.objects.filter(task_id=item.task_id, seq=item.seq).values_list(*columns).first()
    if row is None:
        raise LookupError(f"task {item.task_id} has no event {item.seq}")
    kind, payload, state, context_id = row
    return event_row(item.task_id, context_id, item.seq, kind, payload, state)


def _task_as_of(event: EventDocument, folds: Folds | None) -> TaskDocument:
    base = folds.find(event.task_id, event.seq) if folds else None
    folded = _fold_on(event.task_id, event.seq, base or _snapshot(event.task_id, event.seq))
    if folds:
        folds.keep(event.task_id, folded)
    return document(folded.task, event.seq)


def _snapshot(task_id: str, seq: int) -> _Folded | None:
    """Return the stored snapshot, unless it is of a later event or not to be used."""
    if Task.objects.filter(pk=task_id).values_list("snapshot_seq", flat=True).get() > seq:
        return None
    stored, _ = read_snapshot(task_id)
    if not 0 < stored.seq <= seq:
        return None
    return _Folded(task_of(stored), stored.seq, len(stored.artifacts or "") + len(stored.history or ""))


def _fold_on(task_id: str, seq: int, base: _Folded | None) -> _Folded:
    task, after, size = (base.task, base.seq, base.size) if base else (None, 0, 0)
    rows = Event.objects.filter(task_id=task_id, seq__gt=after, seq__lte=seq).order_by("seq")
    tail = list(rows.values_list("seq", "kind", "payload"))
    if task is None and not tail:
        raise LookupError(f"task {task_id} has no events")
    size += sum(len(payload) for _, _, payload in tail)
    return _Folded(fold(task, (event_of(event_row(task_id, "", *row, None)) for row in tail)), seq, size)
