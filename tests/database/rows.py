"""Rows of tasks, created through the bridge."""

from typing import Any

from tasks_app.database.bridge import bridge
from tests.conftest import Person
from tests.operations.rows import creation


def create_task(owner: Person, key: str = "k", **more: Any) -> str:
    item = creation(owner, key, **more)
    assert bridge.do(item) is None
    assert item.task
    return item.task.id
