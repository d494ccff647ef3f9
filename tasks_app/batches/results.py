"""The events of the task of a batch: its progress, the results of its items in their order, and its end."""

from collections.abc import Sequence
from typing import Any

import orjson
from django.conf import settings
from msgspec import UNSET

from a2a.dialects.json.json_1_0 import task_of
from a2a.events import ArtifactAdded, Event, StatusChanged
from a2a.states import TaskState
from a2a.types import Artifact, Json, Message, Part, Role, Status, Task
from tasks_app import clock
from tasks_app.batches.rows import Progress, Turn
from tasks_app.event_log import ReadTask, read_many
from tasks_app.event_log.columns import is_small
from tasks_app.ids import uuid7
from tasks_app.models import BatchItem

ARTIFACT = "results"
"""The id of the artifact with the results: a data part for each item, in the order of the items."""
TOGETHER = 2_000_000
"""Characters of the events of the tasks whose results are read and written together. A single task may have more."""
STEPS = 20
"""Progress reports of a batch, at most. The results that arrive show the progress too."""


def results_of(items: Sequence[BatchItem]) -> list[Json]:
    """Return the results of items that have ended, from the first one on: as many as have TOGETHER characters.

    There is one at least. The tasks of items may be large, so no more of them are in memory at the same time, and of
    each large one only its result.
    """
    ids = [item.task_id for item in items if item.task_id]
    reads = read_many([_reading(id) for id in ids], small=True) if ids else []
    tasks = {read.document.id: read for read in reads if read}
    results, size = list[Json](), 0
    for item in items:
        read = tasks.get(item.task_id or "")
        size += read.size if read else 0
        if results and size > TOGETHER:
            break
        if read and not is_small(read.size):
            (read,) = read_many([_reading(read.document.id)])
        results.append(_result(item, task_of(read.document) if read else None))
    return results


def _reading(task_id: str) -> ReadTask:
    return ReadTask(task_id=task_id, sight=None, history=False)


def _result(item: BatchItem, task: Task | None) -> Json:
    result: Json = {"index": item.place, "state": item.state}
    if item.about is not None:
        result["task"] = item.about
    if item.task_id is not None:
        result["taskId"] = item.task_id
    if item.error is not None:
        return result | {"error": orjson.loads(item.error)}
    if task is None:
        return result
    if task.status.message is not None and task.status.state is not TaskState.COMPLETED:
        result["error"] = {"message": task.status.message.text}
    return result | _output(task)


def _output(task: Task) -> Json:
    """Return the texts and values of the artifacts, as far as a batch repeats them."""
    values: list[Any] = []
    rest = settings.A2A_BATCH_RESULT_CHARACTERS
    for part in (part for artifact in task.artifacts for part in artifact.parts):
        value = part.text if part.text is not None else part.data
        if value is UNSET:
            continue
        rest -= len(value) if isinstance(value, str) else len(orjson.dumps(value))
        if rest < 0:
            return {"output": values, "truncated": True}
        values.append(value)
    return {"output": values} if values else {}


def chunk_events(results: Sequence[Json], cursor: int, size: int) -> list[Event]:
    """Return the events that append results, from the item at the cursor on."""
    return [
        ArtifactAdded(
            artifact=Artifact(
                artifact_id=ARTIFACT, name=ARTIFACT, parts=(Part(data=result, media_type="application/json"),)
            ),
            append=place > 0,
            last_chunk=place == size - 1,
        )
        for place, result in enumerate(results, cursor)
    ]


def has_news(before: int, end: int, size: int) -> bool:
    """Return whether a batch of that size reports its progress when the number of its results grows to `end`."""
    stride = -(-size // STEPS)
    return end // stride > before // stride or end == size


def progress_event(turn: Turn, progress: Progress, state: TaskState = TaskState.WORKING) -> Event:
    """Return the event that reports how many items have ended."""
    numbers = {"total": turn.size, "ended": progress.ended, "failed": progress.failed}
    text = f"{progress.ended:,} of {turn.size:,} items have ended, {progress.failed:,} of them without success."
    message = Message(
        message_id=uuid7(),
        role=Role.AGENT,
        parts=(Part(text=text, media_type="text/plain"),),
        task_id=turn.id,
        context_id=progress.context_id,
        metadata={"operation": turn.operation, "progress": numbers},
    )
    return StatusChanged(status=Status(state=state, message=message, timestamp=clock.now()))


def end_state(progress: Progress) -> TaskState:
    """Return the state in which a batch ends: it fails if no item has succeeded."""
    return TaskState.FAILED if progress.failed == progress.ended else TaskState.COMPLETED
