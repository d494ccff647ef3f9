"""The doctor, called by its command, and rows for it to examine."""

from datetime import timedelta
from typing import Any

from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.models import Process
from tests.conftest import Person
from tests.operations.rows import addition, chunk, creation, status, wish
from tests.support.commands import run

AGO = timedelta(hours=1)


def doctor(*words: str) -> tuple[list[dict[str, Any]], dict[str, Any], int]:
    """Return the findings, the closing line and the exit code."""
    (*findings, end), _, code = run("a2a", "doctor", "--json", *words)
    return findings, end, code


def worked_on(owner: Person, *, key: str = "k") -> str:
    """Return the id of a task with five events that an agent works on."""
    item = creation(owner, key)
    bridge.do(item)
    (read,) = bridge.do(wish(1))
    assert item.task
    for event in (chunk("one", append=False), chunk("two"), status(TaskState.WORKING, "on it")):
        bridge.do(addition(item.task.id, event, fence=read.fence))
    return item.task.id


def process(**values: Any) -> str:
    """Return the name of a process that has just been seen."""
    now = clock.now()
    fields = {"name": "host:1:ab", "role": "worker", "version": "1", "started_at": now - AGO, "seen_at": now}
    return Process.objects.create(**fields | values).name
