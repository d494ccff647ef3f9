"""The memory of an agent's run: that of the owner of its task. A run that another one has followed writes nothing."""

from functools import partial
from typing import Any

from a2a.errors import MemoryNotFound
from a2a.memory import DeleteMemory, ListMemory, MemoryDocument, MemoryDoor, RetrieveMemory, SearchMemory, StoreMemory
from a2a.requests import Request
from tasks_app.database.bridge import bridge
from tasks_app.database.outages import persist, persist_now
from tasks_app.database.work import Do, DoSlowly, Work
from tasks_app.event_log import TaskRead
from tasks_app.memory.checks import check_request
from tasks_app.memory.entries import Holder, delete, store
from tasks_app.memory.reading import list_entries, read, search


class RunMemory:
    """A performer of an agent's requests, in the name of a holder. A database that is away for less than a lease fails
    none of them."""

    def __init__(self, holder: Holder) -> None:
        self.holder = holder

    async def ask(self, request: Request) -> Any:
        item = self._item(request)
        return await (persist(item, self._name) if self._may_repeat(request) else bridge.ask(item))

    def ask_now(self, request: Request) -> Any:
        item = self._item(request)
        return persist_now(item, self._name) if self._may_repeat(request) else bridge.do(item)

    @property
    def _name(self) -> str:
        return f"task {self.holder.task_id}: its memory"

    def _may_repeat(self, request: Request) -> bool:
        """Return whether a request may wait for the database, and be repeated.

        None may within a call, which must be answered soon. Nor may a write over a version: if the first one was done
        after all, the second one would be refused because of it.
        """
        is_over_version = isinstance(request, StoreMemory) and request.if_version is not None
        return self.holder.task_id is not None and not is_over_version

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
