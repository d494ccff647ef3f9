"""Values that JSON allows and few programs send, over each version and from the database (docs/protocol.md#json)."""

import json
import uuid
from typing import Any

import httpx
import pytest

from tests.transports.calls import call, refusal

pytestmark = pytest.mark.storage

EXACT = [0, -1, 2**53 + 1, 2**63 - 1, 2**64 - 1, -(2**63), 0.1, 1e-7, 1e22, -0.0]
"""Numbers that are sent back as they came."""
ROUNDED = {2**64: 1.8446744073709552e19, -(2**63) - 1: -9.223372036854775808e18, 10**30 + 1: 1e30}
"""Whole numbers beyond 64 bits, and what they become."""


def with_data(data: str) -> bytes:
    """Return a send with one part of data, and with the same metadata."""
    data = f'{{"n":{data}}}'
    message = f'{{"messageId":"{uuid.uuid4()}","role":"ROLE_USER","metadata":{data},"parts":[{{"data":{data}}}]}}'
    return b'{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":%b}}' % message.encode()


def echoes_of(caller: httpx.Client, data: str) -> list[Any]:
    """Return the data and the metadata, as a send answers them and as each version gets them afterwards."""
    sent = caller.post("/jsonrpc", content=with_data(data)).json()["result"]["task"]
    gets = [caller.post("/jsonrpc", content=call(name, {"id": sent["id"]})) for name in ("GetTask", "tasks/get")]
    tasks = [sent, *(get.json()["result"] for get in gets), caller.get(f"/tasks/{sent['id']}").json()]
    messages = [task["history"][0] for task in tasks]
    return [value["n"] for message in messages for value in (message["metadata"], message["parts"][0]["data"])]


def test_numbers_of_64_bits_come_back_as_they_were(caller: httpx.Client) -> None:
    for echo in echoes_of(caller, json.dumps(EXACT)):
        assert [repr(number) for number in echo] == [repr(number) for number in EXACT]


def test_longer_whole_numbers_are_rounded_as_floating_point(caller: httpx.Client) -> None:
    for echo in echoes_of(caller, json.dumps([*ROUNDED])):
        assert echo == [*ROUNDED.values()]
        assert all(isinstance(number, float) for number in echo)


@pytest.mark.parametrize("value", ["1e400", "-1e400", '"\\ud800"', '"\\udc00x"', "NaN"])
def test_values_beyond_floating_point_and_utf_8_are_no_json(caller: httpx.Client, unchanged: None, value: str) -> None:
    refusal(caller.post("/jsonrpc", content=with_data(value)), 200, -32700)


@pytest.mark.parametrize(
    "params", ['{"pageSize":0,"pageSize":1}', '{"page_size":0,"pageSize":1}', '{"pageSize":0,"page_size":1}']
)
def test_the_last_of_members_with_one_name_counts(caller: httpx.Client, unchanged: None, params: str) -> None:
    body = b'{"jsonrpc":"2.0","id":7,"method":"ListTasks","params":%b}' % params.encode()
    assert "result" in caller.post("/jsonrpc", content=body).json()
