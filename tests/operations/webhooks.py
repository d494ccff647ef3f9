"""Tasks with webhooks, and a sender that is driven by hand."""

import asyncio
from itertools import count
from typing import Any

from a2a.events import Event
from a2a.requests import CreatePushConfig
from a2a.states import TaskState
from a2a.types import PushConfig
from tasks_app.database.bridge import bridge
from tasks_app.models import Delivery
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.webhooks.sending import Sender
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.rows import addition, creation, status
from tests.support.receiver import Receiver, Reply

_keys = count(1)
OPS = Operator(name="ops", door=COMMAND)
NOTHING = Reply(503)
WORKS, DONE = status(TaskState.WORKING), status(TaskState.COMPLETED)


def config(url: str, version: str = "1.0", **more: Any) -> PushConfig:
    return PushConfig(url=url, language=f"a2a-{version}", **more)


def task(person: Person, **more: Any) -> str:
    """Create a task that no agent takes up; return its id."""
    item = creation(person, f"hook-{next(_keys)}", agent="nobody", **more)
    bridge.do(item)
    assert item.task
    return item.task.id


def hooked(person: Person, url: str, version: str = "1.0", **more: Any) -> str:
    """Create a task with a webhook; return its id."""
    task_id = task(person)
    hook(person, task_id, url, version, **more)
    return task_id


def hook(person: Person, task_id: str, url: str, version: str = "1.0", **more: Any) -> PushConfig:
    found = ask(person, CreatePushConfig(task_id=task_id, config=config(url, version, **more)))
    assert isinstance(found, PushConfig)
    return found


def happens(task_id: str, *events: Event) -> None:
    """Append each event by itself."""
    for event in events:
        assert bridge.do(addition(task_id, event)), "the log took it"


def pump(sender: Sender | None = None) -> None:
    """Send all that is due, and wait for the results."""
    sender = sender or Sender()

    async def go() -> None:
        try:
            while await sender.look() or sender.running:
                await asyncio.gather(*sender.running)
        finally:
            if sender.client is not None:
                await sender.client.aclose()
                sender.client = None

    asyncio.run(go())


def states() -> list[tuple[int, str, int]]:
    """Return sequence number, state and attempt of each delivery, webhook by webhook."""
    return list(Delivery.objects.order_by("webhook_id", "seq").values_list("seq", "state", "attempt"))


def seqs(there: Receiver) -> list[int]:
    """Return the sequence numbers in the order in which they arrived."""
    return [got.seq for got in there.got]
