"""Memory: JSON values that an owner stores under a namespace and a key. The agents of an owner share it.

The requests of its operations are here too, and the memory that an agent gets with its run.
"""

from collections.abc import Awaitable
from datetime import datetime
from typing import Any, ClassVar, Protocol, TypeVar

from msgspec import UNSET, Struct, UnsetType

from a2a.requests import Request

R = TypeVar("R")


class MemoryDocument(Struct, frozen=True, kw_only=True):
    """An entry of the memory."""

    namespace: str
    key: str
    version: int
    """The number of the write that stored it, from 1."""
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = None
    """The time from which it is gone; None for an entry that stays."""
    size: int = 0
    """Bytes of its data as JSON."""
    data: Any | UnsetType = UNSET
    """The value; UNSET where only the entry itself was asked for."""


class MemoryPage(Struct, frozen=True, kw_only=True):
    """A page of entries, in the order of their namespaces and keys."""

    entries: tuple[MemoryDocument, ...]
    next_page_token: str
    """Empty on the last page."""


class MemoryDeletion(Struct, frozen=True, kw_only=True):
    """The result of deleting an entry."""

    namespace: str
    key: str


class MemoryRequest(Request, frozen=True, kw_only=True):
    """The base of the requests about one namespace of the caller's memory."""

    namespace: str


class StoreMemory(MemoryRequest, frozen=True, kw_only=True):
    """Store a JSON value in the caller's memory under a namespace and a key. The last write wins. With `ifVersion`, a
    write to an entry of another version is refused.
    """

    changes: ClassVar[bool] = True

    key: str
    data: Any
    ttl: float | None = None
    """Seconds after which the entry is gone; None for the longest time that the server keeps entries."""
    if_version: int | None = None
    """The version that the entry must have; 0 for a key without an entry. None sets no condition."""


class RetrieveMemory(MemoryRequest, frozen=True, kw_only=True):
    """Return an entry of the caller's memory with its data."""

    key: str


class DeleteMemory(MemoryRequest, frozen=True, kw_only=True):
    """Delete an entry of the caller's memory. With `ifVersion`, an entry of another version stays."""

    changes: ClassVar[bool] = True

    key: str
    if_version: int | None = None
    """The version that the entry must have. None sets no condition."""


class ListMemory(Request, frozen=True, kw_only=True):
    """Return a page of the entries of the caller's memory, without their data, by namespace and key."""

    namespace: str | None = None
    """None for all namespaces of the caller."""
    prefix: str = ""
    """The beginning of the keys."""
    page_size: int = 50
    page_token: str | None = None


class SearchMemory(MemoryRequest, frozen=True, kw_only=True):
    """Return a page of the entries of a namespace that contain a text, or whose data has a value in a field. A page
    looks at a bounded number of entries, so it may be short and not the last one.
    """

    text: str = ""
    """A text in the key or in a string of the data, in any case; empty for no condition."""
    field: str = ""
    """The names of members of objects on the way to a value, joined by dots; empty for no condition."""
    value: str | float | bool | None = None
    """The value in that field, or an element of the array there."""
    page_size: int = 20
    page_token: str | None = None


class AttemptOver(Exception):
    """Raised for a write to the memory by an attempt that is over: another one works on the task, or it has ended."""


class MemoryDoor(Protocol):
    """A performer of requests about the memory of an owner. The service provides it."""

    def ask(self, request: Request) -> Awaitable[Any]:
        """Perform a request on a loop. Raises the errors of a2a/errors.py and AttemptOver."""

    def ask_now(self, request: Request) -> Any:
        """Perform a request in a thread that may block. Raises as `ask` does."""


NAMESPACE = "default"
"""The namespace of a call of an agent that names none."""


class Memory:
    """The memory of the owner of a task, which all agents of the owner share.

    Each method has a twin for agents that are not async, whose name ends in `_now`. Writes raise AttemptOver once
    another attempt works on the task.
    """

    def __init__(self, door: MemoryDoor) -> None:
        self.door = door

    async def store(
        self,
        key: str,
        data: Any,
        *,
        namespace: str = NAMESPACE,
        ttl: float | None = None,
        if_version: int | None = None,
    ) -> MemoryDocument:
        """Store a value, and return its entry without the data. Raises InvalidParams for another version."""
        return _entry(await self.door.ask(_store(key, data, namespace, ttl, if_version)))

    def store_now(
        self,
        key: str,
        data: Any,
        *,
        namespace: str = NAMESPACE,
        ttl: float | None = None,
        if_version: int | None = None,
    ) -> MemoryDocument:
        """Store a value as `store` does."""
        return _entry(self.door.ask_now(_store(key, data, namespace, ttl, if_version)))

    async def retrieve(self, key: str, *, namespace: str = NAMESPACE) -> MemoryDocument:
        """Return an entry with its data. Raises MemoryNotFound."""
        return _entry(await self.door.ask(RetrieveMemory(namespace=namespace, key=key)))

    def retrieve_now(self, key: str, *, namespace: str = NAMESPACE) -> MemoryDocument:
        """Return an entry as `retrieve` does."""
        return _entry(self.door.ask_now(RetrieveMemory(namespace=namespace, key=key)))

    async def delete(self, key: str, *, namespace: str = NAMESPACE) -> None:
        """Delete an entry. Raises MemoryNotFound."""
        await self.door.ask(DeleteMemory(namespace=namespace, key=key))

    def delete_now(self, key: str, *, namespace: str = NAMESPACE) -> None:
        """Delete an entry as `delete` does."""
        self.door.ask_now(DeleteMemory(namespace=namespace, key=key))

    async def list(self, *, namespace: str | None = NAMESPACE, prefix: str = "", **page: Any) -> MemoryPage:
        """Return a page of entries without their data. `page` may have `page_size` and `page_token`."""
        return _page(await self.door.ask(ListMemory(namespace=namespace, prefix=prefix, **page)))

    def list_now(self, *, namespace: str | None = NAMESPACE, prefix: str = "", **page: Any) -> MemoryPage:
        """Return a page of entries as `list` does."""
        return _page(self.door.ask_now(ListMemory(namespace=namespace, prefix=prefix, **page)))

    async def search(self, text: str = "", *, namespace: str = NAMESPACE, **more: Any) -> MemoryPage:
        """Return a page of the entries that contain a text. `more` may have the other fields of SearchMemory."""
        return _page(await self.door.ask(SearchMemory(namespace=namespace, text=text, **more)))

    def search_now(self, text: str = "", *, namespace: str = NAMESPACE, **more: Any) -> MemoryPage:
        """Return a page of entries as `search` does."""
        return _page(self.door.ask_now(SearchMemory(namespace=namespace, text=text, **more)))


def _store(key: str, data: Any, namespace: str, ttl: float | None, if_version: int | None) -> StoreMemory:
    return StoreMemory(namespace=namespace, key=key, data=data, ttl=ttl, if_version=if_version)


def _entry(result: Any) -> MemoryDocument:
    return _expect(result, MemoryDocument)


def _page(result: Any) -> MemoryPage:
    return _expect(result, MemoryPage)


def _expect(result: Any, kind: type[R]) -> R:
    if not isinstance(result, kind):
        raise TypeError(f"the memory answered with {type(result).__name__} instead of {kind.__name__}")
    return result
