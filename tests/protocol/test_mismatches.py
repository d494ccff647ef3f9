"""A value of a wrong type in the params of a call is named in the words of JSON."""

from typing import Any

import pytest

from a2a.dialects import v1_0
from a2a.errors import InvalidParams
from a2a.types import Json

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
