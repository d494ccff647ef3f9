"""JSON-RPC 2.0, section by section, at the path of VAPORA."""

import json
from typing import Any

import pytest
from django.test import AsyncClient

from tests.conftest import Person

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("service"),
    pytest.mark.requirement("VAPORA-03", "VAPORA-09"),
]
MISSING = {"jsonrpc": "2.0", "method": "tasks/get", "params": {"id": "missing"}}


async def post(owner: Person, body: Any, path: str = "/a2a", **headers: str) -> tuple[int, Any]:
    """Return the status and the JSON of the answer; None if it is empty."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"authorization": f"Bearer {owner.key}"} | headers
    response = await AsyncClient().post(path, data=data, content_type="application/json", headers=sent)
    answer = json.loads(response.content) if response.content else None
    for member in answer if isinstance(answer, list) else [answer] if answer else []:
        check(member)
    return response.status_code, answer


def check(answer: Any) -> None:
    """Check the members of a response object (section 5) and of an error object (section 5.1)."""
    assert answer["jsonrpc"] == "2.0"
    assert answer.keys() in ({"jsonrpc", "id", "result"}, {"jsonrpc", "id", "error"})
    if "error" in answer:
        assert {"code", "message"} <= answer["error"].keys() <= {"code", "message", "data"}
        assert type(answer["error"]["code"]) is int
        assert isinstance(answer["error"]["message"], str)


@pytest.mark.parametrize("rpc_id", [1, 0, -7, "1", "x" * 200, "ключ", None], ids=lambda rpc_id: repr(rpc_id)[:9])
async def test_the_answer_has_the_id_of_the_request_in_its_type(owner: Person, rpc_id: Any) -> None:
    status, answer = await post(owner, MISSING | {"id": rpc_id})
    assert (status, answer["id"], type(answer["id"])) == (404, rpc_id, type(rpc_id))


@pytest.mark.parametrize(
    "body", [b" ", b"{", b"nonsense", b'{"jsonrpc":"2.0","method":"foobar,"params":"bar","baz]', b"\xff\xfe"]
)
async def test_a_body_that_is_not_json_is_a_parse_error_without_an_id(owner: Person, body: bytes) -> None:
    status, answer = await post(owner, body)
    assert (status, answer["id"], answer["error"]["code"]) == (400, None, -32700)


@pytest.mark.parametrize("body", [1, "x", None, True, {"jsonrpc": "2.0", "method": 1, "params": "bar"}, []])
async def test_a_value_that_is_no_request_is_an_invalid_request(owner: Person, body: Any) -> None:
    status, answer = await post(owner, body)
    assert (status, answer["id"], answer["error"]["code"]) == (400, None, -32600)


@pytest.mark.parametrize("method", ["foobar", "tasks.get", "GetTask", "rpc.unknown", "tasks/none"])
async def test_a_method_that_does_not_exist_is_named_as_such(owner: Person, method: str) -> None:
    _, answer = await post(owner, {"jsonrpc": "2.0", "method": method, "id": "1"})
    assert (answer["id"], answer["error"]["code"]) == ("1", -32601)


@pytest.mark.parametrize("params", [[], {}, {"id": 5}, "id"])
async def test_wrong_params_are_named_with_the_field(owner: Person, params: Any) -> None:
    status, answer = await post(owner, {"jsonrpc": "2.0", "method": "tasks/get", "params": params, "id": 1})
    assert (status, answer["error"]["code"]) == (400, -32602)
    assert answer["error"]["data"]["violations"][0]["description"]


async def test_a_notification_has_no_answer_even_if_it_fails(owner: Person) -> None:
    assert await post(owner, MISSING) == (204, None)
    assert await post(owner, [MISSING, {"jsonrpc": "2.0", "method": "foobar"}]) == (204, None)


async def test_a_batch_is_200_and_its_members_are_answered_by_their_ids(owner: Person) -> None:
    batch = [MISSING | {"id": "a"}, {"foo": "boo"}, MISSING, {"jsonrpc": "2.0", "method": "foobar", "id": 5}, 1]
    status, answers = await post(owner, batch)
    assert status == 200
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        ("a", -32000),
        (None, -32600),
        (5, -32601),
        (None, -32600),
    ]


async def test_a_batch_of_values_that_are_no_requests_has_an_error_for_each(owner: Person) -> None:
    status, answers = await post(owner, [1, 2, 3])
    assert (status, [answer["error"]["code"] for answer in answers]) == (200, [-32600] * 3)


@pytest.mark.parametrize("path", ["/a2a", "/a2a/", "/agents/echo/a2a"])
async def test_each_of_its_paths_takes_a_call(owner: Person, path: str) -> None:
    message = {"messageId": "m", "role": "user", "kind": "message", "parts": [{"kind": "text", "text": "hello"}]}
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": message}}
    status, answer = await post(owner, body, path)
    assert (status, answer["result"]["kind"]) == (200, "task")


async def test_a_version_that_it_is_not_is_an_invalid_request(owner: Person) -> None:
    status, answer = await post(owner, MISSING | {"id": 1}, **{"A2A-Version": "1.0"})
    assert (status, answer["error"]["code"]) == (400, -32600)
    assert answer["error"]["data"]["supportedVersions"] == "0.3"
