"""Requests about the memory, short, and performed for a person."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from a2a.errors import InvalidParams
from a2a.memory import ListMemory, MemoryDocument, MemoryPage, RetrieveMemory, SearchMemory, StoreMemory
from tests.conftest import Person
from tests.operations.asking import ask

SPEC = {
    "requirements": ["auth", "validation", "security"],
    "constraints": ["performance", "scalability"],
    "phase": "specification",
}


def put(who: Person, key: str = "key", data: Any = "data", *, namespace: str = "sparc", **more: Any) -> MemoryDocument:
    entry = ask(who, StoreMemory(namespace=namespace, key=key, data=data, **more))
    assert isinstance(entry, MemoryDocument)
    return entry


def get(who: Person, key: str = "key", *, namespace: str = "sparc") -> MemoryDocument:
    entry = ask(who, RetrieveMemory(namespace=namespace, key=key))
    assert isinstance(entry, MemoryDocument)
    return entry


def keys(who: Person, namespace: str | None = "sparc", **more: Any) -> list[str]:
    page = ask(who, ListMemory(namespace=namespace, **more))
    assert isinstance(page, MemoryPage)
    return [entry.key for entry in page.entries]


def found(who: Person, namespace: str = "sparc", **more: Any) -> list[str]:
    """Return the keys of all pages of a search."""
    names, token = list[str](), None
    while True:
        page = ask(who, SearchMemory(namespace=namespace, page_token=token, **more))
        names += [entry.key for entry in page.entries]
        if not (token := page.next_page_token):
            return names


@contextmanager
def refused(sentence: str) -> Iterator[None]:
    with pytest.raises(InvalidParams) as refusal:
        yield
    assert sentence in refusal.value.message
