"""The memory of an agent's run: that of the owner of its task. A run that another one has followed writes nothing."""

from collections.abc import Awaitable
from functools import partial
from typing import Any

from a2a.errors import MemoryNotFound
from a2a.memory import DeleteMemory, ListMemory, MemoryDocument, MemoryDoor, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import Request
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do, DoSlowly, Work
from tasks_app.event_log import TaskRead
from tasks_app.memory.checks import check_request
from tasks_app.memory.entries import Holder, delete, store
from tasks_app.memory.reading import list_entries, read, search


class RunMemory:
    """A performer of an agent's requests, in the name of a holder."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder

    def ask(self, request: Request) -> Awaitable[Any]:
        return bridge.ask(self._item(request))

    def ask_now(self, request: Request) -> Any:
        return bridge.do(self._item(request))

    def _item(self, request: Request) -> Work[Any]:
        """Return the work item of a request. Raises InvalidParams."""
        holder, owner = self.holder, self.holder.owner_id
        match request:
            case StoreMemory():
                item: Work[Any] = Do(partial(store, holder, request))
            case DeleteMemory():
                item = Do(partial(delete, holder, request))
            case RetrieveMemory():
                item = DoSlowly(partial(_retrieve, owner, request), owner)
            case ListMemory():
                item = DoSlowly(partial(list_entries, owner, request), owner)
            case SearchMemory():
                item = DoSlowly(partial(search, owner, request), owner)
            case _:
                raise TypeError(f"{type(request).__name__} is no request about the memory")
        check_request(request)
        return item


def _retrieve(owner_id: int, request: RetrieveMemory) -> MemoryDocument:
    if (entry := read(owner_id, request.namespace, request.key)) is None:
        raise MemoryNotFound(namespace=request.namespace, key=request.key)
    return entry


def memory_of(task: TaskRead) -> RunMemory:
    """Return the memory for the run of a task that was claimed."""
    return RunMemory(
        Holder(
            tenant_id=task.tenant_id,
            owner_id=task.owner_id,
            author=task.agent,
            task_id=task.document.id,
            fence=task.fence,
        )
    )


def holder_of(door: MemoryDoor | None) -> Holder | None:
    """Return the holder of a memory, for a child process that makes its own; None for any other memory."""
    return door.holder if isinstance(door, RunMemory) else None
