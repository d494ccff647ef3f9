"""An exchange shows what was sent, to the letter, whatever became of the task."""

import json
from typing import Any

import pytest

from tasks_app.exchanges.responses import response_text
from tasks_app.models import Event
from tests.conftest import until
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import LATER, Post, call, name_of, new, old, task_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.parametrize(
    "wire",
    [
        new(),
        new(agent="bench"),
        new(agent="replies"),
        new(agent="form-coroutine"),
        new(agent="gate", **LATER),
        new(agent="asks"),
        new(agent="raises"),
        new(agent="quick-raises"),
        new("é\U0001f600\u2028<>&"),
        new(rpc_id='id " é'),
        new(rpc_id=2**53 + 1),
        new(rpc_id=1.0),
        new(rpc_id=None),
        new(rpc_id=-1),
        new(configuration={"historyLength": 0}),
        new(agent="form-coroutine", configuration={"historyLength": 0}),
        new(agent="form-coroutine", configuration={"historyLength": 1}),
        old(),
        old(agent="replies"),
        old(agent="form-coroutine"),
        old(agent="form-generator", rpc_id="x"),
        old(agent="gate", configuration={"blocking": False}),
        call("ListTasks", {}),
        call("tasks/list", {}),
        call("GetTask", {"id": "missing"}, "é"),
        call("nope", {}),
        call("SendMessage", {}),
        call("CreateTaskPushNotificationConfig", {"taskId": "t"}),
        call("GetExtendedAgentCard", {}),
        new(agent="nobody"),
        call("tasks/cancel", {"id": "missing"}),
        b"{",
        b"[]",
        b"5",
    ],
    ids=name_of,
)
def test_operators_see_the_answer_that_was_sent(post: Post, wire: Any) -> None:
    status, content = post(wire)
    (exchange,) = recorded(1)
    assert response_text(exchange) == content.decode()
    assert (status, exchange.http_status, exchange.response_bytes) == (200, 200, len(content))
    answer = json.loads(content)
    assert exchange.code == answer.get("error", {}).get("code")
    if not isinstance(wire, bytes):
        assert (exchange.rpc_id, exchange.method) == (None if wire["id"] is None else str(wire["id"]), wire["method"])
        assert (
            exchange.rpc_id_type
            == {str: "string", int: "number", float: "number", type(None): "null"}[type(wire["id"])]
        )
        assert json.loads(exchange.body.request) == wire


@pytest.mark.parametrize("methods", [("GetTask", "CancelTask"), ("tasks/get", "tasks/cancel")], ids=["1.0", "0.3"])
def test_later_changes_of_a_task_do_not_change_what_was_sent(post: Post, methods: tuple[str, str]) -> None:
    get, cancel = methods
    sent = [post(new(agent="gate", **LATER))[1]]
    made = task_id(sent[0])
    until(lambda: Event.objects.filter(task_id=made, kind="artifactUpdate").exists(), "the agent is at work")
    sent.append(post(call(get, {"id": made}))[1])
    sent.append(post(call(get, {"id": made, "historyLength": 0}))[1])
    sent.append(post(call("SendMessage", new(task=made, **LATER)["params"]))[1])
    sent.append(post(call(cancel, {"id": made}))[1])
    sent.append(post(call(get, {"id": made}))[1])
    found = recorded(6)
    assert [response_text(exchange) for exchange in found] == [content.decode() for content in sent]
    assert {exchange.task_id for exchange in found} == {made}
    assert {exchange.outcome for exchange in found} == {"result"}


def test_the_events_of_a_call_name_its_exchange(post: Post) -> None:
    post(new())
    (exchange,) = recorded(1)
    assert set(Event.objects.values_list("exchange_id", flat=True)) == {exchange.id}


def test_a_repeated_message_has_an_exchange_of_its_own(post: Post) -> None:
    for agent in ("echo", "replies", "form-coroutine"):
        wire = new(agent=agent)
        assert post(wire) == post(wire)
    found = recorded(6)
    shown = [(exchange.task_id, exchange.context_id, response_text(exchange)) for exchange in found]
    assert shown[::2] == shown[1::2]
    assert "" not in [text for _, _, text in shown]
