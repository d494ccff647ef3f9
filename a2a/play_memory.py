"""A memory for agents in tests (a2a/testing.py): the entries are in a dictionary, and none expires."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from a2a.errors import InvalidParams, MemoryNotFound
from a2a.memory import (
    DeleteMemory,
    ListMemory,
    MemoryDeletion,
    MemoryDocument,
    MemoryPage,
    RetrieveMemory,
    SearchMemory,
    StoreMemory,
)
from a2a.requests import Request

NOW = datetime(2000, 1, 1, tzinfo=UTC)
"""The time of every write."""


class PlayMemory:
    """A memory in this process. A page has all entries."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], MemoryDocument] = {}

    async def ask(self, request: Request) -> Any:
        return self.ask_now(request)

    def ask_now(self, request: Request) -> Any:
        match request:
            case StoreMemory():
                return self._store(request)
            case RetrieveMemory(namespace=namespace, key=key):
                return self._find(namespace, key)
            case DeleteMemory(namespace=namespace, key=key):
                self._find(namespace, key)
                del self.entries[namespace, key]
                return MemoryDeletion(namespace=namespace, key=key)
            case ListMemory(namespace=namespace, prefix=prefix):
                rows = (one for one in self._ordered(namespace) if one.key.startswith(prefix))
                return MemoryPage(entries=tuple(replace(one, data=UNSET) for one in rows), next_page_token="")
            case SearchMemory():
                rows = (one for one in self._ordered(request.namespace) if _meets(one, request))
                return MemoryPage(entries=tuple(rows), next_page_token="")
        raise TypeError(f"{type(request).__name__} is no request about the memory")

    def _find(self, namespace: str, key: str) -> MemoryDocument:
        if (namespace, key) not in self.entries:
            raise MemoryNotFound(namespace=namespace, key=key)
        return self.entries[namespace, key]

    def _ordered(self, namespace: str | None) -> Iterable[MemoryDocument]:
        return (self.entries[place] for place in sorted(self.entries) if namespace in (None, place[0]))

    def _store(self, request: StoreMemory) -> MemoryDocument:
        place = request.namespace, request.key
        former = self.entries.get(place)
        version = former.version if former else 0
        if request.if_version not in (None, version):
            raise InvalidParams(("ifVersion", f"is {request.if_version}, but the entry has version {version}"))
        text = json.dumps(request.data)
        entry = MemoryDocument(
            namespace=request.namespace,
            key=request.key,
            version=version + 1,
            created_at=former.created_at if former else NOW,
            updated_at=NOW,
            size=len(text.encode()),
            data=json.loads(text),
        )
        self.entries[place] = entry
        return replace(entry, data=UNSET)


def _meets(entry: MemoryDocument, request: SearchMemory) -> bool:
    """Return whether an entry meets the conditions of a search."""
    text = f"{entry.key}\n{json.dumps(entry.data, ensure_ascii=False)}".casefold()
    if request.text.casefold() not in text:
        return False
    if not request.field:
        return True
    value = entry.data
    for name in request.field.split("."):
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    values = value if isinstance(value, list) else [value]
    return any(type(one) is type(request.value) and one == request.value for one in values)
