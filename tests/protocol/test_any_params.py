"""Whatever the params are: every decoder gives a request or says InvalidParams, and never fails otherwise."""

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from a2a.answers import Answer
from a2a.dialects.json.json_1_0 import encode_message
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.languages import DIALECTS
from a2a.requests import Request, SendMessage

METHODS = {f"{dialect.version} {name}": method for dialect in DIALECTS for name, method in dialect.methods.items()}
EXAMPLE: dict[str, Any] = {
    "id": "t",
    "tenant": "x",
    "status": "working",
    "pageSize": 1,
    "limit": 1,
    "historyLength": 1,
    "statusTimestampAfter": "2026-03-02T09:15:05.250Z",
    "metadata": {"a": 1},
    "configuration": {"historyLength": 1, "acceptedOutputModes": ["a/b"], "blocking": True},
    "message": {
        "messageId": "m",
        "role": "user",
        "metadata": {},
        "parts": [
            {"kind": "text", "text": "a"},
            {"raw": "YQ==", "url": None},
            {"kind": "file", "file": {"bytes": "YQ==", "name": "n"}},
            {"data": {"value": 1}, "metadata": {"data_part_compat": True}},
        ],
    },
}
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=6)
    | st.sampled_from(["ROLE_USER", "TASK_STATE_WORKING", "message", "9999-12-31T23:59:59-23:59", "YQ", "-1", "_"])
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for key, child in inner for deeper in places(child, (*path, key)))]


PLACES = [place for place in places(EXAMPLE) if place]


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """Return the example with other values in up to three places."""
    params = copy.deepcopy(EXAMPLE)
    if draw(st.booleans()):
        params["message"]["role"] = "ROLE_USER"
        params["message"]["parts"] = [{"text": "a"}, {"raw": "YQ"}, {"data": None}]
    for place in draw(st.lists(st.sampled_from(PLACES), max_size=3)):
        inner: Any = params
        try:
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = draw(anything)
        except (KeyError, IndexError, TypeError):
            continue
    return params


def decoded(method: Method, params: Any) -> Request | None:
    try:
        return method.decode(params)
    except InvalidParams as error:
        violations = error.violations
    assert violations
    assert all(field and description for field, description in violations)
    return None


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@settings(max_examples=50, deadline=None)
@given(params=spoiled() | anything)
def test_any_params_are_a_request_or_invalid(method: Method, params: Any) -> None:
    request = decoded(method, params)
    if isinstance(request, SendMessage):
        orjson.dumps(encode_message(request.message))
        for dialect in DIALECTS:
            send = dialect.methods["SendMessage" if "SendMessage" in dialect.methods else "message/send"]
            assert orjson.loads(send.encode(Answer(message=request.message)))
