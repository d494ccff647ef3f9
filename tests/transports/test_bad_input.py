"""Mistakes in calls, told by a real server in the right words; nothing of them is stored."""

import json
from typing import Any

import httpx
import pytest

from tests.support.agents import GEO
from tests.transports.calls import PLAIN, call, refusal, send

pytestmark = [pytest.mark.storage, pytest.mark.usefixtures("unchanged")]


# -------------------------------------------------------- in the order of work


ZERO = call("GetTask", {"id": "a\0b"})


def test_a_zero_character_in_params_is_looked_at_after_key_version_and_method(caller: httpx.Client) -> None:
    refusal(caller.post("/jsonrpc", content=ZERO, headers={"Authorization": ""}), 401, -38009, 7)
    refusal(caller.post("/jsonrpc", content=ZERO, headers={"A2A-Version": "9.9"}), 200, -32009, 7)
    refusal(caller.post("/jsonrpc", content=call("Nothing", {"id": "a\0b"})), 200, -32601, 7)
    told = refusal(caller.post("/jsonrpc", content=ZERO), 200, -32602, 7)
    assert [found["field"] for detail in told["data"] for found in detail.get("fieldViolations", [])] == ["id"]


def test_a_notification_with_a_zero_character_is_answered_as_little_as_any(caller: httpx.Client) -> None:
    silent = call("GetTask", {"id": "a\0b"}, id=...)
    assert (response := caller.post("/jsonrpc", content=silent)).status_code == 204, response.text
    (reply,) = caller.post("/jsonrpc", content=b"[" + silent + b"," + ZERO + b"]").json()
    assert (reply["id"], reply["error"]["code"]) == (7, -32602)


@pytest.mark.parametrize("method", ["GetTask", "tasks/get", "SendStreamingMessage", "nothing"])
def test_only_streams_of_0_x_are_refused_with_an_event(caller: httpx.Client, method: str) -> None:
    wish = call(method, {"id": "missing"})
    told = caller.post("/jsonrpc", content=wish, headers={"Accept": "text/event-stream"})
    assert told.headers["content-type"] == "application/json"


@pytest.mark.parametrize("lines", [["text/event-stream"], ["*/*", "text/event-stream"]], ids=", ".join)
def test_a_refused_stream_of_0_x_is_an_event_with_the_headers_of_a_stream(
    caller: httpx.Client, lines: list[str]
) -> None:
    configuration = {"pushNotificationConfig": {"url": "http://10.0.0.1/"}}
    message = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": "x"}]}
    params = {"message": message, "metadata": {"agent": "extended"}, "configuration": configuration}
    del caller.headers["Accept"]
    headers = [("X-A2A-Extensions", GEO), *(("Accept", line) for line in lines)]
    told = caller.post("/jsonrpc", content=call("message/stream", params), headers=headers)
    assert told.headers["content-type"] == "text/event-stream"
    assert (told.headers["x-a2a-extensions"], told.headers["x-accel-buffering"]) == (GEO, "no")
    assert json.loads(told.text.removeprefix("data: "))["error"]["code"] == -32602


@pytest.mark.parametrize("header", [{}, {"Authorization": ""}], ids=["a caller", "a stranger"])
@pytest.mark.parametrize("method", ["agent/capabilities", "memory/store", "sparc/phase/set"])
def test_a_sparc_call_whose_envelope_cannot_be_read_is_refused_in_the_words_of_sparc(
    caller: httpx.Client, method: str, header: dict[str, str]
) -> None:
    told = caller.post("/jsonrpc", content=call(method, {}, id="a\0"), headers=header).json()["error"]
    assert told["data"]["details"]
    assert told["data"]["reason"] == ("UNAUTHENTICATED" if header else "INVALID_REQUEST")


# -------------------------------------------------------------- no call at all


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"nonsense",
        b'{"a":1,}',
        b"{'a':1}",
        b'{"id": NaN}',
        b'{"id": Infinity}',
        b'"\\ud800"',
        b'"\\udc00x"',
        b'{"a":"\xff"}',
        b'"\xc3"',
        b'"\xed\xa0\x80"',
        "{}".encode("utf-16"),
        "{}".encode("utf-8-sig"),
        b"\0",
        b'"\0"',
        b"[1] [2]",
        b"[" * 100_000,
        b"1e999x",
        b"tru",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_a_body_that_is_not_json_is_a_parse_error(caller: httpx.Client, body: bytes) -> None:
    error = refusal(caller.post("/jsonrpc", content=body), 200, -32600 if len(body) == 100_000 else -32700)
    assert set(error) == {"code", "message"}


@pytest.mark.parametrize("body", [b"1", b'"text"', b"null", b"true", b"1.5"], ids=repr)
def test_a_body_that_is_no_object_is_an_invalid_request(caller: httpx.Client, body: bytes) -> None:
    assert "must be an object" in refusal(caller.post("/jsonrpc", content=body), 200, -32600)["message"]


@pytest.mark.parametrize("body", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 100_000 + b"1" + b"}" * 100_000])
def test_a_depth_bomb_is_an_invalid_request(caller: httpx.Client, body: bytes) -> None:
    assert "deeper than 64" in refusal(caller.post("/jsonrpc", content=body), 200, -32600)["message"]


def test_json_is_taken_down_to_64_levels_and_no_further(caller: httpx.Client) -> None:
    def nested(levels: int) -> bytes:
        return b'{"jsonrpc":"2.0","id":7,"method":"nope","params":' + b"[" * levels + b"]" * levels + b"}"

    refusal(caller.post("/jsonrpc", content=nested(63)), 200, -32601, 7)
    refusal(caller.post("/jsonrpc", content=nested(64)), 200, -32600)


# ---------------------------------------------------------------- the envelope


@pytest.mark.parametrize(
    ("body", "rpc_id", "told"),
    [
        (call(jsonrpc="1.0"), 7, "jsonrpc"),
        (call(jsonrpc=2.0), 7, "jsonrpc"),
        (call(jsonrpc=...), 7, "jsonrpc"),
        (call(id=1.5), None, "id must be"),
        (call(id=True), None, "id must be"),
        (call(id=[1]), None, "id must be"),
        (call(id={"a": 1}), None, "id must be"),
        (call(id=2**70), None, "id must be"),
        (call(id="a\0b"), None, "U+0000"),
        (call(method=""), 7, "method"),
        (call(method=5), 7, "method"),
        (call(method=...), 7, "method"),
        (call(method="a\0b"), 7, "U+0000"),
        (call(method=..., id=...), None, "method"),
    ],
    ids=str,
)
@pytest.mark.requirement("ZONE-04")
def test_an_envelope_that_is_wrong_is_named(caller: httpx.Client, body: bytes, rpc_id: Any, told: str) -> None:
    assert told in refusal(caller.post("/jsonrpc", content=body), 200, -32600, rpc_id)["message"]


@pytest.mark.parametrize("method", ["nope", "sendmessage", "SendMessage ", "__init__", "tasks/", "é" * 300])
@pytest.mark.requirement("ZONE-05")
def test_an_unknown_method_has_a_code_and_no_data(caller: httpx.Client, method: str) -> None:
    assert set(refusal(caller.post("/jsonrpc", content=call(method)), 200, -32601, 7)) == {"code", "message"}


def test_an_empty_batch_and_one_of_1001_are_single_errors(caller: httpx.Client) -> None:
    refusal(caller.post("/jsonrpc", content=b"[]"), 200, -32600)
    many = b"[" + b",".join([send()] * 1_001) + b"]"
    assert "1000" in refusal(caller.post("/jsonrpc", content=many), 200, -32600)["message"]


@pytest.mark.requirement("ACP-17")
def test_bad_members_of_a_batch_fail_one_by_one(caller: httpx.Client) -> None:
    stream = json.loads(call("SendStreamingMessage", {"message": PLAIN}))
    answers = caller.post("/jsonrpc", json=[1, [], {}, {"jsonrpc": "2.0", "id": "x", "method": "nope"}, stream]).json()
    assert [(answer["id"], answer["error"]["code"]) for answer in answers] == [
        (None, -32600),
        (None, -32600),
        (None, -32600),
        ("x", -32601),
        (7, -32600),
    ]


# ------------------------------------------------------------------ the params


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (call(params=...), "params"),
        (call(params=None), "params"),
        (call(params=[PLAIN]), "params"),
        (call(params="text"), "params"),
        (call(params={}), "message"),
        (call(params={"message": "hi"}), "message"),
        (send(messageId=...), "message.messageId"),
        (send(messageId=""), "message.messageId"),
        (send(messageId=5), "message.messageId"),
        (send(role=...), "message.role"),
        (send(role="user"), "message.role"),
        (send(role="ROLE_UNSPECIFIED"), "message.role"),
        (send(role="ROLE_AGENT"), "message.role"),
        (send(role=[]), "message.role"),
        (send(parts=...), "message.parts"),
        (send(parts=[]), "message.parts"),
        (send(parts={}), "message.parts"),
        (send(parts=["hi"]), "message.parts[0]"),
        (send(parts=[{"text": "a"}, {}]), "message.parts[1]"),
        (send(parts=[{"text": "a", "url": "b"}]), "message.parts[0]"),
        (send(parts=[{"text": 5}]), "message.parts[0].text"),
        (send(parts=[{"raw": "?"}]), "message.parts[0].raw"),
        (send(metadata=[1]), "message.metadata"),
        (send(contextId="x" * 256), "message.contextId"),
        (send(extensions="a"), "message.extensions"),
        (send(parts=[{"text": "a\0b"}]), "message.parts[0].text"),
        (send(metadata={"a\0b": 1}), "message.metadata"),
        (send(messageId="a\0b"), "message.messageId"),
        (call(params={"message": PLAIN, "configuration": {"historyLength": -1}}), "configuration.historyLength"),
        (call(params={"message": PLAIN, "configuration": {"returnImmediately": 1}}), "configuration.returnImmediately"),
        (call("GetTask", {}), "id"),
        (call("GetTask", {"id": ""}), "id"),
        (call("GetTask", {"id": 5}), "id"),
        (call("GetTask", {"id": "t", "historyLength": "x"}), "historyLength"),
        (call("ListTasks", {"pageSize": 0}), "pageSize"),
        (call("ListTasks", {"pageSize": 101}), "pageSize"),
        (call("ListTasks", {"status": "done"}), "status"),
        (call("ListTasks", {"statusTimestampAfter": "yesterday"}), "statusTimestampAfter"),
        (call("ListTasks", {"pageToken": "made up"}), "pageToken"),
    ],
    ids=str,
)
@pytest.mark.requirement("ZONE-05")
def test_params_that_are_wrong_are_named(caller: httpx.Client, body: bytes, field: str) -> None:
    error = refusal(caller.post("/jsonrpc", content=body), 200, -32602, 7)
    if "data" in error:
        fields = [found["field"] for detail in error["data"] for found in detail.get("fieldViolations", [])]
        assert fields == [field]
    else:  # before the dialect is known
        assert f"{field} " in error["message"]


@pytest.mark.parametrize(
    ("params", "field"),
    [
        ({"message": {**PLAIN, "role": "user", "parts": [{"kind": "text", "file": {}}]}}, "message.parts[0].kind"),
        ({"message": {**PLAIN, "role": "user", "parts": [{"kind": "file", "file": {}}]}}, "message.parts[0].file"),
        ({"message": PLAIN}, "message.role"),
        ({"message": {**PLAIN, "role": "user", "parts": []}}, "message.parts"),
        ([], "params"),
    ],
    ids=str,
)
def test_params_of_the_old_dialect_are_named_in_its_own_shape(caller: httpx.Client, params: Any, field: str) -> None:
    error = refusal(caller.post("/jsonrpc", content=call("message/send", params)), 200, -32602, 7)
    assert error["data"]["reason"] == "INVALID_PARAMS"
    assert [found["field"] for found in error["data"]["violations"]] == [field]


@pytest.mark.parametrize("method", ["GetTask", "tasks/get"])
def test_members_that_nobody_knows_are_ignored(caller: httpx.Client, method: str) -> None:
    params = {"id": "missing", "unknown": {"a": [1]}, "metadata": {"b": None}}
    refusal(caller.post("/jsonrpc", content=call(method, params, extra=1)), 200, -32001, 7)
