"""The envelope of ACP: its closed schema, ids, notifications and batches; and error objects that say what to do."""

from typing import Any
from uuid import uuid4

import pytest

from a2a import errors
from a2a.dialects.acp.language import LANGUAGE
from a2a.errors import Error
from tasks_app.exchanges.recording import recorder
from tasks_app.models import Exchange, Task
from tests.acp.calls import call, create, error_of, post, said, settled
from tests.conftest import PATIENCE, Person, until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


@pytest.mark.requirement("ACP-03")
@pytest.mark.parametrize(
    "more",
    [{"extra": 1}, {"a2a-service-parameters": {}}, {"params": []}, {"params": None}, {"params": "x"}, {"params": 1}],
)
def test_the_request_schema_is_closed(owner: Person, more: Any) -> None:
    error = error_of("tasks.get", {"taskId": "t"}, owner.key, **more)
    assert (error["code"], error["message"]) == (-32600, "Invalid Request")
    new = {"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "t"}} | more
    status, _, answer = post(new, owner.key)
    code = -32602 if "params" in more else -32001
    assert (status, answer["error"]["code"]) == (200, code), "A2A allows more members"


@pytest.mark.requirement("ACP-03")
@pytest.mark.parametrize("rpc_id", [1.5, True, {}, []])
def test_an_id_is_a_string_an_integer_or_null(owner: Person, rpc_id: Any) -> None:
    status, _, answer = post(call("tasks.get", {"taskId": "t"}, id=rpc_id), owner.key)
    assert (status, answer["id"], answer["error"]["code"]) == (200, None, -32600)


@pytest.mark.requirement("ACP-04")
@pytest.mark.parametrize("rpc_id", ["a", 1, 0, -7, None, "é" * 100])
def test_the_id_comes_back_as_it_was_sent(owner: Person, rpc_id: Any) -> None:
    status, _, answer = post(call("tasks.get", {"taskId": "t"}, id=rpc_id), owner.key)
    assert (status, answer["id"], set(answer)) == (200, rpc_id, {"jsonrpc", "id", "error"})
    assert type(answer["id"]) is type(rpc_id)


@pytest.mark.parametrize("method", ["tasks.", ".", "tasks.get ", "a.b.c", "täsks.get", "x\n."])
def test_every_method_with_a_dot_is_refused_in_acp(owner: Person, method: str) -> None:
    error = error_of(method, {}, owner.key)
    assert (error["code"], error["data"]["suggestion"] != "") == (-32601, True)


@pytest.mark.requirement("ACP-05")
def test_a_notification_is_done_without_a_body(owner: Person) -> None:
    task = settled(owner.key, create(owner.key, "asks")["taskId"], "INPUT_REQUIRED")
    wire = {"jsonrpc": "2.0", "method": "tasks.cancel", "params": {"taskId": task["taskId"]}}
    status, _, answer = post(wire, owner.key)
    assert (status, answer) == (204, None)
    assert Task.objects.get(pk=task["taskId"]).state == "canceled"
    assert recorder.drain(PATIENCE)
    row = Exchange.objects.order_by("id").last()
    assert row
    assert (row.method, row.outcome, row.http_status, row.dialect) == ("tasks.cancel", "notified", 204, "acp")


@pytest.mark.requirement("ACP-17")
def test_a_batch_mixes_results_errors_notifications_and_languages(owner: Person) -> None:
    task = settled(owner.key, create(owner.key)["taskId"], "COMPLETED")["taskId"]
    batch = [
        call("tasks.get", {"taskId": task}, id="1"),
        call("tasks.get", {"taskId": "missing"}, id="2"),
        {"jsonrpc": "2.0", "method": "tasks.get", "params": {"taskId": task}},
        call("GetTask", {"id": task}, id="3"),
        call("tasks.get", {"taskId": task}, id="4", extra=1),
        call("tasks/get", {"id": "missing"}, id="5"),
    ]
    status, _, answers = post(batch, owner.key)
    assert status == 200
    found = {answer["id"]: answer for answer in answers}
    assert len(found) == len(answers) == 5
    assert found["1"]["result"]["task"]["status"] == "COMPLETED"
    assert found["3"]["result"]["status"]["state"] == "TASK_STATE_COMPLETED"
    codes = {name: answer["error"]["code"] for name, answer in found.items() if "error" in answer}
    assert codes == {"2": -40001, "4": -32600, "5": -32001}
    assert post([], owner.key)[2]["error"]["code"] == -32600


@pytest.mark.requirement("ACP-11")
@pytest.mark.parametrize("kind", errors.ALL, ids=lambda kind: kind.__name__)
def test_every_error_has_a_suggestion(kind: type[Error]) -> None:
    wire = LANGUAGE.error(kind())
    assert wire["data"]["suggestion"]
    assert ("retryAfter" in wire["data"]) is issubclass(kind, errors.RateLimited | errors.Unavailable)


@pytest.mark.requirement("ACP-12")
def test_a_fault_shows_its_reference_and_nothing_inside(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, *args: Any) -> None:
        raise RuntimeError("the password is hunter2")

    monkeypatch.setattr("tasks_app.operations.tasks.read_whole", broken)
    error = error_of("tasks.get", {"taskId": str(uuid4())}, owner.key)
    assert (error["code"], error["message"]) == (-32603, "Internal error")
    assert set(error["data"]) == {"suggestion", "reason", "reference", "timestamp"}
    assert "hunter2" not in str(error)


@pytest.mark.requirement("ACP-06")
def test_messages_without_ids_are_never_the_same_message(owner: Person) -> None:
    before = Task.objects.count()
    batch = [call("tasks.create", {"initialMessage": said()}, id=number) for number in range(3)]
    _, _, answers = post(batch, owner.key)
    assert len({answer["result"]["task"]["taskId"] for answer in answers}) == 3
    assert Task.objects.count() == before + 3
    until(lambda: not Task.objects.exclude(state="completed").exists(), "the tasks end")
