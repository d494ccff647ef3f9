"""Lists and searches of the memory: pages, prefixes, texts, fields, and the bound of a search."""

from typing import Any

import pytest

from a2a.errors import InvalidParams
from a2a.memory import ListMemory, SearchMemory
from tasks_app.memory import reading
from tests.conftest import Person
from tests.operations.asking import ask
from tests.operations.remembering import SPEC, found, keys, put, refused

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def test_a_list_has_pages_and_a_prefix(owner: Person) -> None:
    for number in range(7):
        put(owner, f"a%{number}", namespace="sparc")
    put(owner, "A%0")
    put(owner, "b")
    assert keys(owner, prefix="a%") == [f"a%{number}" for number in range(7)]
    names, token = list[str](), None
    while True:
        page = ask(owner, ListMemory(namespace="sparc", prefix="a", page_size=3, page_token=token))
        names += [entry.key for entry in page.entries]
        if not (token := page.next_page_token):
            break
    assert names == [f"a%{number}" for number in range(7)]
    for wrong in ("?", "e30", "NQ", "bnVsbA", "WyJvdGhlciIsImsiXQ", "WyJcdTAwMDAiLCJrIl0"):
        with refused("cursor"):
            keys(owner, page_token=wrong)


def test_a_search_finds_texts_in_any_case(owner: Person) -> None:
    put(owner, "one", {"text": 'Grüße, "Welt"\n100%'})
    put(owner, "two", ["STRASSE"])
    put(owner, "three", {"title": "nothing"})
    for text, expected in {
        "grüsse": ["one"],
        'welt"\n100%': ["one"],
        "straße": ["two"],
        "T": ["one", "three", "two"],
        "_": [],
    }.items():
        assert found(owner, text=text) == expected, text


def test_a_search_finds_values_of_fields(owner: Person) -> None:
    put(owner, "spec", SPEC)
    put(owner, "other", {"phase": "refinement", "done": True, "count": 1, "deep": {"er": {"x y": 1.5}}, "none": None})
    put(owner, "plain", "specification")
    put(owner, "large", {"count": 2**64 - 1})
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"field": "phase", "value": "specification"}, ["spec"]),
        ({"field": "requirements", "value": "auth"}, ["spec"]),
        ({"field": "requirements", "value": "nothing"}, []),
        ({"field": "done", "value": True}, ["other"]),
        ({"field": "done", "value": 1}, []),
        ({"field": "count", "value": 1}, ["other"]),
        ({"field": "count", "value": True}, []),
        ({"field": "count", "value": 2**64 - 1}, ["large"]),
        ({"field": "count", "value": -(2**63)}, []),
        ({"field": "count", "value": "1"}, []),
        ({"field": "deep.er.x y", "value": 1.5}, ["other"]),
        ({"field": "deep", "value": 1.5}, []),
        ({"field": "none", "value": None}, ["other"]),
        ({"field": "nowhere", "value": None}, []),
        ({"field": "phase", "value": "refinement", "text": "spec"}, []),
    ]
    for conditions, expected in cases:
        assert found(owner, **conditions) == expected, conditions


def test_a_search_looks_at_a_bounded_number_of_entries(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "SPAN", 3)
    for number in range(8):
        put(owner, f"{number}", "even" if number % 2 == 0 else "odd")
    first = ask(owner, SearchMemory(namespace="sparc", text="even"))
    assert [entry.key for entry in first.entries] == ["0", "2"]
    assert first.entries[0].data == "even"
    assert first.next_page_token
    assert found(owner, text="even") == ["0", "2", "4", "6"]
    assert found(owner, text="even", page_size=1) == ["0", "2", "4", "6"]
    for more in ({}, {"text": "x" * 201}, {"field": 'a"b'}, {"field": "a." * 10 + "a"}, {"text": "x", "page_size": 0}):
        with pytest.raises(InvalidParams):
            found(owner, **more)


def test_a_page_of_a_search_ends_after_so_many_bytes(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "PAGE_BYTES", 100)
    for number in range(5):
        put(owner, f"{number}", "x" * (38 if number < 3 else 200))
    pages, token = list[list[str]](), None
    while token != "":
        page = ask(owner, SearchMemory(namespace="sparc", text="x", page_token=token))
        pages.append([entry.key for entry in page.entries])
        token = page.next_page_token
    assert pages == [["0", "1"], ["2"], ["3"], ["4"]]
