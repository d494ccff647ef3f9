"""The memory methods of SPARC: their params, their requests and their results."""

from typing import Annotated, Any

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a.answers import Result
from a2a.language import Method
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
from a2a.params import INT32, Text, check, or_empty, read_whole, rule, write_time
from a2a.types import Json

MAX_PAGE = 100
_TIME = Annotated[str, rule(format="date-time")]
_VERSION = Annotated[int | None, rule(minimum=0)]
_LIMIT = Annotated[int | float | None, rule(multipleOf=1, minimum=1, maximum=MAX_PAGE)]

# ---------------------------------------------------------------- requests


class EntryParams(Struct, rename="camel"):
    namespace: Text
    key: Text


class StoreParams(EntryParams, rename="camel"):
    data: Any
    ttl: Annotated[int | float | None, rule(exclusiveMinimum=0)] = None
    if_version: _VERSION = None


class DeleteParams(EntryParams, rename="camel"):
    if_version: _VERSION = None


class ListParams(Struct, rename="camel"):
    namespace: Text | None = None
    prefix: str | None = None
    limit: _LIMIT = None
    cursor: str | None = None


class SearchParams(Struct, rename="camel"):
    namespace: Text
    text: str | None = None
    field: str | None = None
    value: str | int | float | bool | None = None
    limit: _LIMIT = None
    cursor: str | None = None


def decode_store(params: Any) -> StoreMemory:
    """Decode the params of memory/store. Raises InvalidParams."""
    wire = check(params, StoreParams)
    return StoreMemory(
        namespace=wire["namespace"],
        key=wire["key"],
        data=wire["data"],
        ttl=wire.get("ttl"),
        if_version=read_whole(wire.get("ifVersion"), "ifVersion", maximum=2**53),
    )


def decode_retrieve(params: Any) -> RetrieveMemory:
    """Decode the params of memory/retrieve. Raises InvalidParams."""
    wire = check(params, EntryParams)
    return RetrieveMemory(namespace=wire["namespace"], key=wire["key"])


def decode_delete(params: Any) -> DeleteMemory:
    """Decode the params of memory/delete. Raises InvalidParams."""
    wire = check(params, DeleteParams)
    version = read_whole(wire.get("ifVersion"), "ifVersion", maximum=2**53)
    return DeleteMemory(namespace=wire["namespace"], key=wire["key"], if_version=version)


def decode_list(params: Any) -> ListMemory:
    """Decode the params of memory/list. Raises InvalidParams."""
    wire = check(or_empty(params), ListParams)
    return ListMemory(namespace=wire.get("namespace"), prefix=wire.get("prefix") or "", **_page(wire, 50))


def decode_search(params: Any) -> SearchMemory:
    """Decode the params of memory/search. Raises InvalidParams."""
    wire = check(params, SearchParams)
    return SearchMemory(
        namespace=wire["namespace"],
        text=wire.get("text") or "",
        field=wire.get("field") or "",
        value=wire.get("value"),
        **_page(wire, 20),
    )


def _page(wire: Json, usual: int) -> dict[str, Any]:
    limit = read_whole(wire.get("limit"), "limit", 1, MAX_PAGE)
    return {"page_size": usual if limit is None else limit, "page_token": wire.get("cursor") or None}


# ----------------------------------------------------------------- answers


class Entry(Struct, rename="camel"):
    """An entry of the memory."""

    namespace: str
    key: str
    version: Annotated[int, rule(minimum=1, maximum=INT32)]
    size: int
    created_at: _TIME
    updated_at: _TIME
    expires_at: _TIME | UnsetType = UNSET
    data: Any = None


class EntryPage(Struct, rename="camel"):
    """The result of memory/list and memory/search."""

    entries: list[Entry]
    next_cursor: str


class Deletion(Struct):
    """The result of memory/delete."""

    namespace: str
    key: str
    deleted: Annotated[bool, rule(enum=[True])]


def encode_entry(result: Result) -> bytes:
    """Return an entry, with its data if the result has it."""
    return orjson.dumps(_entry(_expect(result, MemoryDocument)))


def encode_page(result: Result) -> bytes:
    """Return a page of entries."""
    page = _expect(result, MemoryPage)
    return orjson.dumps({"entries": [_entry(one) for one in page.entries], "nextCursor": page.next_page_token})


def encode_deletion(result: Result) -> bytes:
    """Return the namespace and the key of an entry that is gone."""
    gone = _expect(result, MemoryDeletion)
    return orjson.dumps({"namespace": gone.namespace, "key": gone.key, "deleted": True})


def _entry(entry: MemoryDocument) -> Json:
    out: Json = {
        "namespace": entry.namespace,
        "key": entry.key,
        "version": entry.version,
        "size": entry.size,
        "createdAt": write_time(entry.created_at),
        "updatedAt": write_time(entry.updated_at),
    }
    if entry.expires_at is not None:
        out["expiresAt"] = write_time(entry.expires_at)
    return out if entry.data is UNSET else out | {"data": entry.data}


def _expect(result: Result, kind: type[Any]) -> Any:
    if not isinstance(result, kind):
        raise TypeError(f"a {kind.__name__} is needed, not {type(result).__name__}")
    return result


METHODS = {
    "memory/store": Method(
        request=StoreMemory, decode=decode_store, encode=encode_entry, params=StoreParams, result=Entry
    ),
    "memory/retrieve": Method(
        request=RetrieveMemory, decode=decode_retrieve, encode=encode_entry, params=EntryParams, result=Entry
    ),
    "memory/list": Method(
        request=ListMemory, decode=decode_list, encode=encode_page, params=ListParams, result=EntryPage
    ),
    "memory/delete": Method(
        request=DeleteMemory, decode=decode_delete, encode=encode_deletion, params=DeleteParams, result=Deletion
    ),
    "memory/search": Method(
        request=SearchMemory, decode=decode_search, encode=encode_page, params=SearchParams, result=EntryPage
    ),
}
"""The methods by their names."""
