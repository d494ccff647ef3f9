"""Messages as a program writes them: texts, values, and what is neither."""

from typing import Any

import pytest

from a2a.client.systems import message_of
from a2a.types import Message, Part, Role


def test_a_text_becomes_a_message_with_an_id_of_its_own() -> None:
    first, second = message_of("hello"), message_of("hello")
    assert (first.role, first.parts) == (Role.USER, (Part(text="hello"),))
    assert first.message_id != second.message_id


def test_a_message_keeps_its_id_and_its_places() -> None:
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),), task_id="t", context_id="c")
    assert message_of(message) == message
    assert message_of(message, task_id="u").task_id == "u"


@pytest.mark.parametrize("message", [None, {"parts": [{"text": "x"}]}, b"x", Part(text="x")])
def test_a_value_of_another_type_is_refused_by_its_name(message: Any) -> None:
    with pytest.raises(TypeError, match=f"must be a text or a Message of a2a.types, not {type(message).__name__}$"):
        message_of(message)
