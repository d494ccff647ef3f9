"""Messages as a program writes them: texts, values, and what is neither."""

from typing import Any

import pytest

from a2a.client.systems import message_of
from a2a.requests import SendMessage, StreamMessage
from a2a.types import Message, Part, Role
from tests.client_library.faulty import FakeClock, faulty, result, rpc, task


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


@pytest.mark.parametrize(
    ("part", "fault"),
    [
        (Part(text="x", raw=b"x", filename="x.pdf"), "gives a Part with 2 contents"),
        (Part(text="x", data={"words": 100}), "gives a Part with 2 contents"),
        (Part(raw=b"x", url="https://example.org/x"), "gives a Part with 2 contents"),
        (Part(), "gives a Part with 0 contents"),
    ],
)
async def test_a_part_has_one_content_or_its_message_is_not_sent(part: Part, fault: str) -> None:
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="y"), part))
    sentence = f"^the message {fault}: give it one of text=, raw=, url= and data= \\(parts\\[1\\]\\)$"
    async with faulty(result({"task": task()})) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(TypeError, match=sentence):
            await client.send(message)
        with pytest.raises(TypeError, match=sentence):
            client.stream(message)
        with pytest.raises(TypeError, match=sentence):
            await client.execute_batch("review", [message])
        with pytest.raises(TypeError, match=sentence):
            await client.perform(SendMessage(message=message))
        with pytest.raises(TypeError, match=sentence):
            client.follow(StreamMessage(message=message))
    assert server.asked == []


def test_a_part_with_null_beside_its_text_is_told_how_to_leave_it_out() -> None:
    """None is a value of JSON, and not the absence of data."""
    message = Message(message_id="m", role=Role.USER, parts=(Part(text="x", data=None),))
    with pytest.raises(TypeError, match=r"and data= \(data=None is the value null: leave data= out\) \(parts\[0\]\)$"):
        message_of(message)


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        (("x",), r"parts\[0\] of a message must be a Part of a2a.types, such as Part\(text=...\), not str$"),
        (Part(text="x"), "the parts of a message must be a tuple of Part values of a2a.types, not Part$"),
        ((Part(text="x", filename=1),), r"the message gives a Part whose filename= is not a string, but of type int"),  # type: ignore[arg-type]
    ],
)
def test_parts_of_another_type_are_refused_by_their_place(parts: Any, sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{sentence}"):
        message_of(Message(message_id="m", role=Role.USER, parts=parts))
