"""A value of a wrong type in the params of a call is named in the words of JSON."""

from enum import Enum
from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from a2a.dialects import v1_0, zone
from a2a.errors import InvalidParams
from a2a.mismatches import violation
from a2a.types import Json


class Color(Enum):
    """Values of a member."""

    RED = "red"
    GREEN = "green"


class Lamp(Struct):
    """An object with such a member."""

    color: Color


send = v1_0.DIALECT.methods["SendMessage"].decode
MESSAGE: Json = {"messageId": "m", "role": "ROLE_USER", "parts": [{"text": "hi"}]}


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"messageId": 5}, "message.messageId must be a string, not an integer"),
        ({"contextId": 5.5}, "message.contextId must be a string, not a number"),
        ({"parts": "x"}, "message.parts must be an array, not a string"),
        ({"parts": ["x"]}, "message.parts[0] must be an object, not a string"),
        ({"parts": [{"text": True}]}, "message.parts[0].text must be a string, not a boolean"),
    ],
)
def test_a_member_of_a_wrong_type_is_named_in_the_words_of_json(wrong: Json, fault: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        send({"message": MESSAGE | wrong})
    assert " ".join(caught.value.violations[0]) == fault


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ({"message": None}, "message must be an object, not null"),
        (
            {"configuration": {"returnImmediately": "yes"}},
            "configuration.returnImmediately must be a boolean, not a string",
        ),
        (
            {"configuration": {"historyLength": []}},
            "configuration.historyLength must be a number or a string, not an array",
        ),
        ("hello", "params must be an object with named members, not a string"),
        (None, "params must be an object with named members, not null"),
    ],
)
def test_params_of_a_wrong_type_are_named_in_the_words_of_json(wrong: Any, fault: str) -> None:
    with pytest.raises(InvalidParams) as caught:
        send({"message": MESSAGE} | wrong if isinstance(wrong, dict) else wrong)
    assert " ".join(caught.value.violations[0]) == fault


@pytest.mark.parametrize(
    ("kind", "wrong", "fault"),
    [
        (Annotated[float, Meta(ge=0)], -1, "must be at least 0"),
        (Annotated[float, Meta(gt=0.5)], 0.5, "must be above 0.5"),
        (Annotated[int, Meta(le=3600)], 3601, "must be at most 3600"),
        (Annotated[str, Meta(min_length=1)], "", "must not be empty"),
        (Annotated[str, Meta(max_length=2)], "abc", "must have 2 characters at most"),
        (Annotated[list[int], Meta(min_length=2)], [1], "must have 2 items at least"),
        (tuple[int, int], [1], "must have 2 items"),
        (Annotated[str, Meta(pattern="^a+$")], "b", "must match ^a+$"),
        (Annotated[str, Meta(pattern=r"^\d+`'$")], "b", r"must match ^\d+`'$"),
        (Annotated[int, Meta(multiple_of=5)], 3, "must be a multiple of 5"),
        (Literal["x", "y"], "z", "must be one of x, y"),
        (Literal["x", "y"], "z` - at `$.m", "must be one of x, y"),
        (Literal["x"], "z", "must be x"),
        (Literal["x"] | None, "z", "must be x"),
        (Annotated[Literal["x", "y"], Meta(description="A letter.")], "z", "must be one of x, y"),
        (list[Literal[1, 2]], [1, 3], "must be one of 1, 2"),
        (tuple[int, Literal["x", "y"]], [1, "z"], "must be one of x, y"),
        (dict[str, list[Literal["x", "y"]]], {"a.b": ["x", "z"]}, "must be one of x, y"),
        (dict[Literal["x", "y"], int], {"z": 1}, "has a key that must be one of x, y"),
        (dict[int, int], {"z": 1}, "has a key that must be an integer, not a string"),
        (Color, "blue", "must be one of red, green"),
        (list[Lamp], [{"color": "red"}, {"color": "blue"}], "must be one of red, green"),
    ],
)
def test_a_value_beyond_a_limit_is_named_in_the_same_words(kind: Any, wrong: Any, fault: str) -> None:
    holder = msgspec.defstruct("holder", [("n", kind)])
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.convert({"n": wrong}, holder)
    assert violation(str(caught.value), holder)[1] == fault


def test_a_limit_of_a_language_is_named_with_its_member() -> None:
    params = {"channel": "C", "text": "hi", "bot_token": "t", "wait": -1}
    with pytest.raises(InvalidParams) as caught:
        zone.LANGUAGE.methods["execute_task"].decode(params)
    assert caught.value.violations == (("wait", "must be at least 0"),)
