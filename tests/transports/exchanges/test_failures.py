"""Failures to record: they are counted and change no answer."""

import json
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from django.db import OperationalError

from tasks_app import event_log
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.exchanges import recording
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Event, Exchange
from tests.conftest import PATIENCE, until
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import LATER, Post, call, new, task_id

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_the_recorder_is_drained_once_all_is_written_whatever_waits_before_it(post: Post) -> None:
    begun, going_on = threading.Event(), threading.Event()

    def keep_the_lane_busy() -> None:
        begun.set()
        assert going_on.wait(PATIENCE)

    try:
        bridge.put(Do(keep_the_lane_busy))
        assert begun.wait(PATIENCE)
        bridge.put(Do(lambda: None))  # as the sweeper does
        post(call("ListTasks", {}))
        assert not recorder.drain(0)
        seen: Future[int] = Future()
        bridge.put(Do(Exchange.objects.count), seen)
    finally:
        going_on.set()
    assert recorder.drain(PATIENCE)
    assert seen.result(PATIENCE) == 0, "work put behind a record is done before it"
    recorded(1)


def test_exchanges_closed_on_several_loops_at_once_are_all_recorded(post: Post) -> None:
    threads = [threading.Thread(target=post, args=(call("GetTask", {"id": "missing"}),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    recorded(8)


@pytest.mark.requirement("ZONE-17")
def test_a_failure_to_record_is_counted_and_changes_no_answer(
    post: Post, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the disk is full")

    _, content = post(new())
    recorded(1)
    monkeypatch.setattr(recording, "write", fail)
    before = recorder.losses
    _, shown = post(call("GetTask", {"id": task_id(content)}))
    assert task_id(shown) == task_id(content)
    recorder.flush()
    until(lambda: recorder.losses == before + 1, "the loss is counted")
    assert "the disk is full" in caplog.text
    recorded(1)


@pytest.mark.parametrize(
    "wire", [new(), new(agent="replies"), new(agent="form-coroutine")], ids=["quick", "bare", "queued"]
)
def test_a_change_whose_exchange_cannot_be_stored_is_done_without_it(
    post: Post, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    """Its group is done again without the exchanges."""
    whole = OpenExchange.halves

    def broken(self: OpenExchange, result: Any) -> Any:
        row, body = whole(self, result)
        row.rpc_id_type = None  # type: ignore[assignment]  # what no database takes
        return row, body

    monkeypatch.setattr(OpenExchange, "halves", broken)
    before = recorder.losses
    _, content = post(wire)
    assert "result" in json.loads(content), content
    recorder.flush()
    until(lambda: recorder.losses == before + 1, "the loss is counted")
    assert not Exchange.objects.exists()


@pytest.mark.parametrize("done", [False, True], ids=["undone", "done"])
@pytest.mark.parametrize("kind", [event_log.Create, event_log.Append])
def test_a_change_whose_end_nobody_knows_has_its_exchange_once(
    post: Post, monkeypatch: pytest.MonkeyPatch, kind: Any, done: bool
) -> None:
    whole = kind.do_many

    def cut(items: Any) -> Any:
        if done:
            whole(items)
        raise OperationalError("the connection is lost")

    _, content = post(new(agent="gate", **LATER))
    wire = new() if kind is event_log.Create else call("CancelTask", {"id": task_id(content)})
    with monkeypatch.context() as broken:
        broken.setattr(kind, "do_many", cut)
        status, content = post(wire)
    assert (status, json.loads(content)["error"]["code"]) == (503, -38013)
    _, exchange = recorded(2)
    assert (exchange.outcome, exchange.code, exchange.http_status) == ("error", -38013, 503)
    assert (json.loads(exchange.body.request), response_text(exchange)) == (wire, content.decode())
    assert exchange.response_bytes == len(content)
    assert Event.objects.filter(exchange_id=exchange.id).exists() is done
