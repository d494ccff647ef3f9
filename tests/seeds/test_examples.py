"""The comparison of answers with the examples of documents."""

from typing import Any

import pytest

from tests.seeds.examples import filled, lacks

EXAMPLE: dict[str, Any] = {
    "kind": "task",
    "status": {"state": "working"},
    "parts": [{"text": "x"}],
    "number": 1,
    "last": True,
}


def test_an_answer_may_have_more_and_other_values() -> None:
    answer = EXAMPLE | {"status": {"state": "completed", "more": 1}, "number": 2.5, "last": False, "other": None}
    assert lacks(answer, EXAMPLE) == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"kind": "message"}, "kind"),
        ({"status": {}}, "status.state"),
        ({"status": "working"}, "status"),
        ({"parts": []}, "parts"),
        ({"parts": [{}]}, "parts[].text"),
        ({"number": "1"}, "number"),
        ({"last": 1}, "last"),
        ({"number": None}, "number"),
    ],
    ids=str,
)
def test_a_member_that_an_answer_lacks_is_named(change: dict[str, Any], fault: str) -> None:
    assert lacks(EXAMPLE | change, EXAMPLE) == [fault]
    assert lacks(EXAMPLE | change, EXAMPLE, besides=frozenset({fault})) == []


def test_places_are_filled_wherever_they_are() -> None:
    assert filled({"a": ["one", {"b": "one"}], "c": "two"}, {"one": 1}) == {"a": [1, {"b": 1}], "c": "two"}
