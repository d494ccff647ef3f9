"""Exchanges of streams: the frames, the refusals, the callers that left."""

import asyncio
import json
import time
from typing import Any

import pytest
from django.db import OperationalError

from tasks_app import event_log
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Task
from tests.conftest import Server, until
from tests.support.doors import LiveDoor
from tests.support.exchanges import recorded
from tests.support.rpc_speakers import NewSpeaker
from tests.transports.exchanges.calls import Post, call, name_of, new, old

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.parametrize(
    "wire",
    [
        new(method="SendStreamingMessage"),
        new(method="SendStreamingMessage", agent="form-generator"),
        new(method="SendStreamingMessage", agent="asks"),
        new(method="SendStreamingMessage", agent="replies"),
        new(method="SendStreamingMessage", agent="chatty", rpc_id="s"),
        new(method="SendStreamingMessage", agent="raises", configuration={"historyLength": 0}),
        old(method="message/stream", agent="form-generator"),
        old(method="message/stream", agent="replies"),
    ],
    ids=name_of,
)
def test_the_frames_of_a_stream_are_shown_as_they_were_sent(post: Post, wire: Any) -> None:
    _, content = post(wire)
    frames = [line.removeprefix("data: ") for line in content.decode().split("\n") if line.startswith("data: ")]
    (exchange,) = recorded(1)
    assert response_text(exchange).split("\n") == frames
    assert (exchange.outcome, exchange.frames, exchange.code) == ("stream", len(frames), None)
    if exchange.task_id:
        assert exchange.last_seq == Task.objects.get().last_seq


def test_a_stream_that_is_refused_is_an_error(post: Post) -> None:
    status, content = post(call("SubscribeToTask", {"id": "missing"}))
    (exchange,) = recorded(1)
    assert (status, exchange.outcome, exchange.code, exchange.frames) == (200, "error", -32001, 0)
    assert response_text(exchange) == content.decode()


@pytest.mark.parametrize(("trouble", "code"), [(OperationalError("lost"), -38013), (LookupError("a bug"), -32603)])
def test_a_stream_that_fails_says_whether_to_come_back(
    post: Post, monkeypatch: pytest.MonkeyPatch, trouble: Exception, code: int
) -> None:
    def fail(_: Any) -> Any:
        raise trouble

    kind = event_log.ReadEvents
    monkeypatch.setattr(kind, "do_many", fail)
    _, content = post(new(method="SendStreamingMessage", agent="form-coroutine"))
    *_, last = content.decode().strip().split("\n\n")
    event, data = last.split("\n")
    assert (event, json.loads(data.removeprefix("data: "))["error"]["code"]) == ("event: error", code)
    (exchange,) = recorded(1)
    assert (exchange.outcome, exchange.code) == ("stream", code)


def test_a_client_that_leaves_its_stream_is_recorded_with_what_it_saw(server: Server) -> None:
    me = NewSpeaker(door=LiveDoor(server.url), key=server.owner, version="1.0")

    async def leave() -> str:
        me.ids = [time.time_ns()]
        async with me.stream("stream", me.sending("hello", agent="waits")) as frames:
            made = str((await anext(frames)).value["id"])
            await anext(frames)
        return made

    made = asyncio.run(leave())
    query = f"select outcome, frames, http_status from tasks_app_exchange where task_id = '{made}' and outcome <> ''"  # noqa: S608
    ((outcome, frames, status),) = until(lambda: server.rows(query), "the stream is recorded")
    assert (outcome, status) == ("stream", 200)
    assert frames >= 2
    asyncio.run(me.ask("cancel", {"id": made}))
