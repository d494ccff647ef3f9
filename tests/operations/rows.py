"""Items for the event log, made by hand."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from threading import Barrier, Thread
from typing import Any

from django.db import connections

from a2a.dialects.json.json_1_0 import document, event_document
from a2a.events import ArtifactAdded, Event, StatusChanged, TaskCreated
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, Role, Status, Task
from tasks_app import clock
from tasks_app.database.rows import EventRow, KeyRow, TaskRow
from tasks_app.event_log import Append, Claim, Create, Demand, TaskRead, append_many, change, create_many
from tasks_app.ids import uuid7
from tasks_app.models import Event as EventOfLog
from tasks_app.models import Task as Row
from tasks_app.upkeep.retention import Retention
from tests.conftest import PATIENCE, Person

LONG_AGO = datetime(2001, 1, 1, tzinfo=UTC)


def creation(person: Person, key: str, *, id: str = "", context: str = "c", agent: str = "tries-twice") -> Create:
    """Return the creation of a submitted task with one event."""
    now, task_id = clock.now(), id or uuid7()
    task = Task(id=task_id, context_id=context, status=Status(state=TaskState.SUBMITTED, timestamp=now))
    head = document(task, 1)
    event = event_document(TaskCreated(task=task), task_id=task_id, context_id=context, seq=1)
    return Create(
        key=KeyRow(
            owner_id=person.caller.owner_id, key=key, fingerprint="f", task_id=task_id, turn_id=None, created_at=now
        ),
        task=TaskRow(
            id=task_id,
            tenant_id=person.caller.tenant_id,
            owner_id=person.caller.owner_id,
            context_id=context,
            agent=agent,
            state="submitted",
            status=head.status,
            status_at=now,
            last_seq=1,
            metadata=None,
            snapshot_seq=1,
            snapshot_status=head.status,
            artifacts="[]",
            history="[]",
            queue="default",
            priority=0,
            timeout=60.0,
            max_attempts=2,
            created_at=now,
            size=len(event.payload),
        ),
        events=[
            EventRow(
                task_id=task_id,
                seq=1,
                kind=event.kind,
                payload=event.payload,
                state=event.state,
                actor="caller",
                created_at=now,
            )
        ],
    )


@contextmanager
def damaged(task_id: str) -> Iterator[None]:
    """Let a task have an event after its last one, as after an uneven restoration: no append to it can succeed."""
    last = Row.objects.get(pk=task_id).last_seq
    EventOfLog.objects.filter(task_id=task_id, seq=last).update(seq=last + 1)
    yield
    EventOfLog.objects.filter(task_id=task_id, seq=last + 1).update(seq=last)


def chunk(text: str, *, append: bool = True) -> ArtifactAdded:
    return ArtifactAdded(artifact=Artifact(artifact_id="a", parts=(Part(text=text),)), append=append)


def status(state: TaskState, text: str = "") -> StatusChanged:
    said = Message(message_id=uuid7(), role=Role.AGENT, parts=(Part(text=text),)) if text else None
    return StatusChanged(status=Status(state=state, timestamp=clock.now(), message=said))


def addition(task_id: str, *events: Event, **more: Any) -> Append:
    row = Row.objects.only("context_id").get(pk=task_id)
    return change(task_id, row.context_id, events, now=clock.now(), actor="agent", **more)


def wish(limit: int = 10, worker: str = "w", agents: tuple[str, ...] = ("tries-twice",)) -> Claim:
    return Claim(worker=worker, demands=(Demand(agents=agents, queues=("default",), limit=limit),))


def expire(read: TaskRead, **more: Any) -> None:
    """The lease has ended."""
    Row.objects.filter(pk=read.document.id).update(lease_until=clock.now() - timedelta(seconds=1), **more)


def together(number: int, work: Callable[[int], Any]) -> list[Any]:
    """Do the work in so many threads at the same moment; return what each gave or raised."""
    start, results = Barrier(number), [None] * number

    def one(place: int) -> None:
        start.wait(PATIENCE)
        try:
            results[place] = work(place)
        except Exception as error:  # noqa: BLE001  # a result like any other
            results[place] = error  # type: ignore[call-overload]
        finally:
            connections.close_all()  # those of this thread

    threads = [Thread(target=one, args=(place,), daemon=True) for place in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return results


def forget() -> None:
    """Delete all that is past its time."""
    Retention().run_round()


def create_tasks(owner: Person, number: int = 1) -> list[str]:
    items = [creation(owner, f"k{place}") for place in range(number)]
    assert create_many(items) == [None] * number
    return [item.task.id for item in items if item.task]


def append(task_id: str, *events: Any, **more: Any) -> Any:
    return append_many([addition(task_id, *events, **more)])[0]
