"""Batches of tests: begun by a person, and brought to their end as the keeper does it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

from asgiref.sync import async_to_sync

from a2a.batches import BatchInput, ExecuteBatch
from a2a.requests import GetTask
from a2a.types import Task
from tasks_app.batches.rows import take_turns
from tasks_app.models import Batch
from tasks_app.operations.batch_keeper import Keeper
from tasks_app.operations.batch_steps import advance
from tests.conftest import Person, until
from tests.operations.asking import ask, message, shown


def execute(who: Person, *items: str | BatchInput, operation: str = "form-coroutine", **more: Any) -> Task:
    inputs = tuple(BatchInput(message=message(one)) if isinstance(one, str) else one for one in items)
    address = more.pop("address", None)
    return shown(ask(who, ExecuteBatch(operation=operation, items=inputs, **more), agent=address))


def drive(batch_id: str) -> None:
    """Go on with a batch until it is over, as the keeper does."""
    Batch.objects.filter(pk=batch_id).update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())

    def is_over() -> bool:
        return async_to_sync(advance)(turn) is None

    until(is_over, "the batch is over")


def ended(who: Person, batch_id: str) -> Task:
    drive(batch_id)
    return shown(ask(who, GetTask(id=batch_id)))


def results(task: Task) -> list[Any]:
    (artifact,) = task.artifacts
    return [part.data for part in artifact.parts]


def keep_until(is_done: Callable[[], object], what: str) -> None:
    """Have a keeper at work in a thread until something is done."""
    keeper, is_over = Keeper(), Event()

    async def keep() -> None:
        keeper.start()
        await asyncio.to_thread(is_over.wait)
        keeper.stop()

    with ThreadPoolExecutor(1) as threads:
        threads.submit(asyncio.run, keep())
        try:
            until(is_done, what)
        finally:
            is_over.set()
