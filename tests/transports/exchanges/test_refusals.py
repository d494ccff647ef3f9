"""Exchanges of calls that are refused, and what a call brings along."""

import json
from typing import Any

import pytest

from tasks_app.exchanges.responses import response_text
from tasks_app.models import Task
from tests.conftest import Person
from tests.support.draining import draining
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import Post, call, new, old, task_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.requirement("ZONE-18")
def test_a_call_without_a_good_key_keeps_no_content(post: Post) -> None:
    post(new("hunter2", rpc_id="mine"), key=None)
    post(new("hunter2", rpc_id="mine"), key="tdk_a-key-that-nobody-has")
    post(b"{ hunter2", key=None)
    for exchange in recorded(3):
        assert (exchange.outcome, exchange.caller_id, exchange.body.request) == ("refused", None, "")
        assert "hunter2" not in exchange.body.response
    assert [exchange.http_status for exchange in recorded(3)] == [401, 401, 401]


def test_every_exchange_names_the_address_that_it_came_from(post: Post, settings: Any) -> None:
    settings.A2A_TRUSTED_PROXIES = ["127.0.0.0/8"]
    by_proxy = {"X-Forwarded-For": "192.0.2.66, 203.0.113.7"}
    post(new(), **by_proxy)
    post(new(method="SendStreamingMessage"), **by_proxy)
    post([call("ListTasks", {}), call("nope", {})], **by_proxy)
    post(new(), key=None, **by_proxy)
    post(b"{", **by_proxy)
    post(b"x" * 1_000_001, **by_proxy)
    assert [exchange.peer for exchange in recorded(7)] == ["203.0.113.7"] * 7


def test_a_call_below_the_rpc_layer_is_recorded_without_its_content(post: Post) -> None:
    _, content = post(b"x" * 1_000_001)
    (exchange,) = recorded(1)
    assert (exchange.outcome, exchange.http_status, exchange.body.request) == ("refused", 413, "POST /jsonrpc")
    assert (exchange.request_bytes, response_text(exchange)) == (1_000_001, content.decode())


def test_the_headers_of_a_call_are_recorded(post: Post, owner: Person) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"a2a-version": "0.3", "x-request-id": "req-1", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    post(old(), **headers)
    (exchange,) = recorded(1)
    assert (exchange.version, exchange.request_id, exchange.trace) == ("0.3", "req-1", trace)
    assert (exchange.door, exchange.dialect, exchange.caller_id) == ("http", "a2a-0.3", owner.caller.owner_id)
    assert exchange.duration_us


def test_a_process_that_goes_down_takes_no_new_work_and_says_when_to_ask_again(post: Post) -> None:
    _, content = post(new())
    with draining():
        status, refusal = post(new())
        assert (status, json.loads(refusal)["error"]["code"]) == (503, -38013)
        assert post(call("GetTask", {"id": task_id(content)}))[0] == 200
    found = recorded(3)
    assert [(exchange.http_status, exchange.code) for exchange in found] == [(200, None), (503, -38013), (200, None)]
    assert Task.objects.count() == 1
