"""Reads of the memory: one entry, a page by namespace and key, and a search. Expired entries are never seen.

A search looks at the next SPAN entries of one namespace of one owner, which the index gives in their order, and at no
others. So it costs the same however many entries there are; the token of the next page says where it stopped.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Self

import msgspec
import orjson
from django.db import connection
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import Left, StrIndex
from msgspec import Struct
from msgspec.structs import replace

from a2a.errors import InvalidParams
from a2a.memory import ListMemory, MemoryDocument, MemoryPage, SearchMemory
from tasks_app import clock
from tasks_app.database.sql import on_postgres
from tasks_app.database.work import Work
from tasks_app.memory.entries import document_of, find
from tasks_app.models import MemoryEntry

_TABLE = MemoryEntry._meta.db_table
SPAN = 500
"""Entries that a search looks at for one page."""
PAGE_BYTES = 1_000_000
"""Bytes of data after which a page of a search ends. A single entry may have more."""
TOO_LARGE = 2**63
"""The whole number from which on SQLite reads one in JSON as a float."""


class ReadMemory(Work[MemoryDocument | None], Struct, frozen=True, kw_only=True):
    """A read of an entry with its data; None if the owner has none of this key."""

    lane = "read"
    repeatable = True

    owner_id: int
    namespace: str
    key: str

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[MemoryDocument | None]:
        return [read(item.owner_id, item.namespace, item.key) for item in items]


def read(owner_id: int, namespace: str, key: str) -> MemoryDocument | None:
    """Return an entry with its data; None if there is none, and for one that has expired."""
    row = None if "\0" in namespace + key else _living(find(owner_id, namespace, key)).first()
    return _whole(row) if row else None


def _living(rows: QuerySet[MemoryEntry]) -> QuerySet[MemoryEntry]:
    return rows.filter(Q(expires_at__isnull=True) | Q(expires_at__gt=clock.now()))


def _whole(row: MemoryEntry) -> MemoryDocument:
    return replace(document_of(row), data=orjson.loads(row.data))


def list_entries(owner_id: int, request: ListMemory) -> MemoryPage:
    """Return a page of entries without their data. Raises InvalidParams for the token of another list."""
    rows = MemoryEntry.objects.filter(owner_id=owner_id).defer("data", "words")
    if request.namespace is not None:
        rows = rows.filter(namespace=request.namespace)
    if request.prefix:
        rows = rows.alias(start=Left("key", len(request.prefix))).filter(start=request.prefix)
    if request.page_token:
        rows = _after(rows, *_decode(request.page_token, request.namespace))
    rows_and_more = list(_living(rows).order_by("namespace", "key")[: request.page_size + 1])
    entries = rows_and_more[: request.page_size]
    token = _encode(entries[-1]) if len(rows_and_more) > len(entries) else ""
    return MemoryPage(entries=tuple(document_of(row) for row in entries), next_page_token=token)


def search(owner_id: int, request: SearchMemory) -> MemoryPage:
    """Return a page of the entries that meet all conditions, with their data.

    Raises InvalidParams for the token of another search.
    """
    own = MemoryEntry.objects.filter(owner_id=owner_id, namespace=request.namespace)
    if request.page_token:
        own = _after(own, *_decode(request.page_token, request.namespace))
    span = list(_living(own).order_by("key").values_list("pk", "key")[: SPAN + 1])
    ids = [pk for pk, _ in span[:SPAN]]
    heads = list(_matching(ids, request).values_list("pk", "key", "size")[: request.page_size + 1])
    page = _fitting(heads[: request.page_size])
    rows = MemoryEntry.objects.filter(pk__in=[pk for pk, _, _ in page]).defer("words").order_by("key")
    if len(heads) > len(page):
        token = _token(request.namespace, page[-1][1])
    else:
        token = _token(request.namespace, span[SPAN - 1][1]) if len(span) > SPAN else ""
    return MemoryPage(entries=tuple(_whole(row) for row in rows), next_page_token=token)


def _fitting(heads: Sequence[tuple[int, str, int]]) -> Sequence[tuple[int, str, int]]:
    """Return the entries from the first one on that have PAGE_BYTES together, one at least. The last is their size."""
    total = 0
    for place, (_, _, size) in enumerate(heads):
        total += size
        if place and total > PAGE_BYTES:
            return heads[:place]
    return heads


def _matching(ids: Sequence[int], request: SearchMemory) -> QuerySet[MemoryEntry]:
    """Return those of these rows that meet the conditions."""
    rows = MemoryEntry.objects.filter(pk__in=_with_value(ids, request) if request.field else ids).order_by("key")
    if request.text:
        rows = rows.alias(place=StrIndex("words", Value(request.text.casefold()))).filter(place__gt=0)
    return rows


# The value in the field, or an element of the array there. Members of an object do not count.
_FIELD_POSTGRES = f"""
select id from {_TABLE} where id = any(%s) and data::jsonb #> %s @> %s::jsonb
    and jsonb_typeof(data::jsonb #> %s) <> 'object'
"""
_FIELD_SQLITE = f"""
select id from {_TABLE} where id in (select value from json_each(%s)) and json_type(data, %s) <> 'object'
    and exists (select 1 from json_each(data, %s) each where each.type in (%s, %s) and each.value is %s)
"""


def _with_value(ids: Sequence[int], request: SearchMemory) -> list[int]:
    """Return the ids of those rows whose data has the value in the field."""
    names, value = request.field.split("."), request.value
    with connection.cursor() as cursor:
        if on_postgres():
            cursor.execute(_FIELD_POSTGRES, [list(ids), names, orjson.dumps(value).decode(), names])
        else:
            path = "$" + "".join(f'."{name}"' for name in names)
            # SQLite gives the numbers 1 and 0 for true and false, so the type tells them apart.
            kinds = {bool: [str(value).lower()] * 2, str: ["text"] * 2, type(None): ["null"] * 2}
            types = kinds.get(type(value), ["integer", "real"])
            if isinstance(value, int) and abs(value) >= TOO_LARGE:
                value = float(value)
            cursor.execute(_FIELD_SQLITE, [orjson.dumps(ids).decode(), path, path, *types, value])
        return [id for (id,) in cursor.fetchall()]


# --------------------------------------------------------------------- pages


def _after(rows: QuerySet[MemoryEntry], namespace: str, key: str) -> QuerySet[MemoryEntry]:
    return rows.filter(Q(namespace__gt=namespace) | Q(namespace=namespace, key__gt=key))


def _encode(row: MemoryEntry) -> str:
    return _token(row.namespace, row.key)


def _token(namespace: str, key: str) -> str:
    """Return a page token: the place of the last entry. It grants nothing, so it needs no signature."""
    return urlsafe_b64encode(orjson.dumps([namespace, key])).decode().rstrip("=")


def _decode(token: str, namespace: str | None) -> tuple[str, str]:
    try:
        first, key = msgspec.json.decode(urlsafe_b64decode(token + "=" * (-len(token) % 4)), type=tuple[str, str])
        is_ours = "\0" not in first + key and namespace in (None, first)
    except (ValueError, msgspec.DecodeError):
        is_ours = False
    if not is_ours:
        raise InvalidParams(("cursor", "is not the cursor of this list"))
    return first, key
