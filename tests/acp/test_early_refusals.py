"""Calls in ACP that are refused before they are read: in ACP where the method or the key names it, else neutrally."""

import asyncio
import json
from typing import Any

import pytest

from a2a.files import SCHEME
from tasks_app.callers.access import new_key
from tasks_app.exchanges.recording import recorder
from tasks_app.models import Exchange, Task
from tests.acp.calls import call, create, error_of, post, said, settled
from tests.conftest import PATIENCE, Person
from tests.fuzz.asking import ask
from tests.fuzz.calls import Call

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]
MALFORMED: list[dict[str, Any]] = [{"id": True}, {"id": 1.5}, {"id": "x" * 2_000}, {"jsonrpc": "1.0"}, {"id": "\0"}]


def advice(answer: Any) -> str:
    """Return the suggestion of an error; empty for an error in the neutral form, which has no details."""
    error = answer["error"]
    if "data" not in error:
        return ""
    assert error["data"]["timestamp"]
    return str(error["data"]["suggestion"])


# --------------------------------------------------------- malformed calls


@pytest.mark.requirement("ACP-11")
@pytest.mark.parametrize("more", MALFORMED, ids=str)
def test_a_malformed_call_is_refused_in_the_language_of_its_method(owner: Person, more: Any) -> None:
    status, _, answer = post(call("tasks.get", {"taskId": "t"}, **more), owner.key)
    assert (status, answer["error"]["code"]) == (200, -32600)
    assert "jsonrpc, method, params and id" in advice(answer)
    assert answer["error"]["data"]["detail"]
    _, _, (first, second, third) = post(
        [call("tasks.get", {}, **more), call("GetTask", {}, **more), {"id": 1}], owner.key
    )
    assert advice(first)
    assert {advice(second), advice(third)} == {""}, "A2A and an unreadable method are refused neutrally"


@pytest.mark.requirement("ACP-11")
@pytest.mark.parametrize("body", [b"{", b"\xff", b"[]", b"7", b'{"jsonrpc":"2.0","id":1}'])
def test_an_unreadable_body_is_refused_in_the_language_of_the_key(owner: Person, body: bytes) -> None:
    for key, is_in_acp in ((new_key("ann", language="acp"), True), (new_key("bob", language="a2a-1.0"), False)):
        status, _, answer = post(body, key)
        assert (status, answer["id"] in (None, 1), bool(advice(answer))) == (200, True, is_in_acp)


def test_an_unreadable_body_at_another_path_is_not_refused_in_acp(owner: Person) -> None:
    async def refused(path: str) -> Any:
        from config.asgi import application

        headers = (("Content-Type", "application/json"),)
        answer = await ask(application, Call("POST", path, b"{", headers), new_key_of_acp)
        return json.loads(answer.content)

    new_key_of_acp = new_key("ann", language="acp")
    assert "data" in asyncio.run(refused("/jsonrpc"))["error"]
    for path in ("/a2a", "/message:send"):
        assert "suggestion" not in str(asyncio.run(refused(path)))


@pytest.mark.requirement("ACP-01", "ACP-11")
@pytest.mark.parametrize(
    ("status", "verb", "kind", "size"), [(413, "POST", "json", 5_000), (415, "POST", "x", 1), (405, "GET", "json", 0)]
)
def test_a_refusal_of_http_is_in_the_language_of_the_key(
    owner: Person, settings: Any, status: int, verb: str, kind: str, size: int
) -> None:
    from tasks_app.asgi.handler import LeanHandler

    settings.A2A_BODY_BYTES = 4_000

    async def refused(key: str) -> Any:
        headers = (("Content-Type", f"application/{kind}"),)
        answer = await ask(LeanHandler(), Call(verb, "/jsonrpc", b" " * size, headers), key)
        assert answer.status == status
        return json.loads(answer.content)

    for key, is_in_acp in ((new_key("ann", language="acp"), True), (owner.key, False), ("wrong", False)):
        answer = asyncio.run(refused(key))
        assert (answer["error"]["code"], bool(advice(answer))) == (-32600, is_in_acp)


# --------------------------------------------------------------- strangers


@pytest.mark.requirement("ACP-15")
def test_a_batch_of_a_stranger_is_refused_in_the_language_of_all_its_calls() -> None:
    some = [call("tasks.get", {"taskId": "t"}), call("tasks.cancel", {"taskId": "t"}), {"jsonrpc": "2.0", "id": 3}]
    status, _, answer = post(some, None)
    assert (status, answer["id"], answer["error"]["code"]) == (401, None, -40007)
    assert answer["error"]["data"]["requiredScopes"] == ["acp:agent:identify", "acp:tasks:read", "acp:tasks:cancel"]
    status, _, answer = post([*some, call("GetTask", {"id": "t"})], None)
    assert (status, answer["error"]["code"], advice(answer)) == (401, -38009, "")


@pytest.mark.requirement("ACP-15")
def test_a_malformed_call_of_a_stranger_is_refused_for_the_token(owner: Person) -> None:
    status, _, answer = post(call("tasks.get", {}, id=True), "wrong")
    assert (status, answer["error"]["code"], bool(advice(answer))) == (401, -40007, True)


# ------------------------------------------------------------ notifications


@pytest.mark.requirement("ACP-03", "ACP-05")
def test_a_notification_with_another_member_is_not_done_and_operators_see_why(owner: Person) -> None:
    task = settled(owner.key, create(owner.key, "asks")["taskId"], "INPUT_REQUIRED")
    wire = {"jsonrpc": "2.0", "method": "tasks.cancel", "params": {"taskId": task["taskId"]}, "extra": 1}
    status, _, answer = post(wire, owner.key)
    assert (status, answer) == (204, None), "a notification has no answer, not even a refusal"
    assert Task.objects.get(pk=task["taskId"]).state == "input_required"
    assert recorder.drain(PATIENCE)
    row = Exchange.objects.select_related("body").order_by("id").last()
    assert row
    assert "extra" in row.body.response
    assert (row.outcome, row.http_status, row.dialect, row.code) == ("notified", 204, "acp", -32600)


# -------------------------------------------------------- names of members


@pytest.mark.requirement("ACP-11")
def test_an_error_of_the_message_names_the_member_that_the_caller_sent(owner: Person) -> None:
    inside = {"type": "FilePart", "content": None, "reference": f"{SCHEME}x"}
    data = {"type": "DataPart", "content": {"a": 1}}
    stream = post(call("stream.start", {}), owner.key)[2]["result"]["stream"]["streamId"]
    asked = {"metadata": {"agent": "pictures"}}
    places = {
        "initialMessage": [("tasks.create", {"initialMessage": said(part)} | asked) for part in (inside, data)],
        "chunk": [("stream.chunk", {"streamId": stream, "chunk": said(inside), "sequence": 0})],
        "message": [("stream.message", {"streamId": stream, "message": said(inside)})],
    }
    for name, calls in places.items():
        for method, params in calls:
            error = error_of(method, params, owner.key)
            assert (error["code"], error["data"]["field"]) == (-32602, f"params.{name}.parts[0]"), method
            assert error["data"].get("part", f"{name}.parts[0]") == f"{name}.parts[0]"
