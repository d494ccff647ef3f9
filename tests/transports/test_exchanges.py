"""Every call next to its answer: one exchange a member, paired by id, equal to what was sent, without secrets."""

import asyncio
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest
from django.db import OperationalError
from django.test import AsyncClient

from a2a.errors import RateLimited
from tasks_app import event_log
from tasks_app.callers.accounts import account
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.exchanges import recording
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.exchanges.redaction import MASK, TEXT_BYTES, redacted
from tasks_app.exchanges.responses import response_text
from tasks_app.models import Event, Exchange, ExchangeBody, Task
from tasks_app.transports import receiving
from tests.conftest import PATIENCE, Person, Server, until
from tests.support.story import LiveDoor, NewSpeaker

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]

Post = Callable[..., tuple[int, bytes]]


@pytest.fixture
def post(owner: Person) -> Post:
    """POST a value as JSON (or bytes) to the door; the status and the bytes of the answer."""

    def post(wire: Any, key: str | None = owner.key, path: str = "/jsonrpc", **headers: str) -> tuple[int, bytes]:
        async def call() -> tuple[int, bytes]:
            if key:
                headers["authorization"] = f"Bearer {key}"
            body = wire if isinstance(wire, bytes) else json.dumps(wire).encode()
            response = await AsyncClient().post(path, data=body, content_type="application/json", headers=headers)
            if not response.streaming:
                return response.status_code, response.content
            return response.status_code, b"".join([chunk async for chunk in response.streaming_content])

        return asyncio.run(call())

    return post


def recorded(number: int) -> list[Exchange]:
    """So many exchanges, all with an answer, in the order of the calls; no more than these."""
    assert recorder.drain(PATIENCE)
    found = list(Exchange.objects.select_related("body").order_by("id"))
    assert len(found) == number
    assert ExchangeBody.objects.count() == number
    return found


_made = iter(range(1, 1_000_000))


def call(method: str, params: Any, rpc_id: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": rpc_id, "method": method, "params": params}


def new(text: str = "hello", rpc_id: Any = 1, *, method: str = "SendMessage", agent: str = "echo", **more: Any) -> Any:
    said = {"messageId": f"m{next(_made)}", "role": "ROLE_USER", "parts": [{"text": text}]}
    if task := more.pop("task", None):
        said["taskId"] = task
    return call(method, {"message": said, "metadata": {"agent": agent}, **more}, rpc_id)


def old(text: str = "hello", rpc_id: Any = 1, *, method: str = "message/send", agent: str = "echo", **more: Any) -> Any:
    said = {
        "kind": "message",
        "messageId": f"m{next(_made)}",
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }
    return call(method, {"message": said, "metadata": {"agent": agent}, **more}, rpc_id)


def task_id(content: bytes) -> str:
    result = json.loads(content)["result"]
    return str(result.get("task", result)["id"])


def without_id(wire: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in wire.items() if name != "id"}


def name_of(wire: Any) -> str:
    """What is special about the call."""
    if isinstance(wire, bytes):
        return repr(wire)
    params = {name: value for name, value in wire["params"].items() if name != "message"}
    said = wire["params"].get("message", {}).get("parts", [{}])[0].get("text", "")
    return f"{wire['method']} {wire['id']!r} {said[:1]} {json.dumps(params)}"


LATER = {"configuration": {"returnImmediately": True}}


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
def test_what_is_shown_is_what_was_sent(post: Post, wire: Any) -> None:
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


# ----------------------------------------------------------------- streams


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


# ---------------------------------------------------- batch and notification


def test_every_member_of_a_batch_has_one_exchange(post: Post) -> None:
    members = [
        new(rpc_id="a"),
        new(rpc_id=2, agent="replies"),
        without_id(new()),
        call("nope", {}, 4),
        5,
        call("ListTasks", {}, None),
        without_id(call("nope", {})),
        new(rpc_id=8, agent="form-coroutine"),
    ]
    status, content = post(members)
    assert status == 200
    answers = [json.dumps(answer, sort_keys=True) for answer in json.loads(content)]
    found = recorded(8)
    assert len({exchange.request_id for exchange in found}) == 1
    ids = [(exchange.rpc_id_type, exchange.rpc_id, exchange.outcome) for exchange in found]
    assert sorted(found for found in ids if found[1]) == [
        ("number", "2", "result"),
        ("number", "4", "error"),
        ("number", "8", "result"),
        ("string", "a", "result"),
    ]
    assert sorted(exchange.outcome for exchange in found if exchange.rpc_id_type == "absent") == [
        "notified",
        "notified",
    ]
    shown = [response_text(exchange) for exchange in found if exchange.outcome != "notified"]
    assert sorted(json.dumps(json.loads(text), sort_keys=True) for text in shown) == sorted(answers)


def test_members_whose_turn_comes_when_enough_was_answered_are_refused_undone(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiving, "AT_ONCE", 1)
    monkeypatch.setattr(receiving, "BATCH_BYTES", 1_000)
    _, content = post([new("x" * 600, rpc_id=1), new(rpc_id=2), call("ListTasks", {}, 3), without_id(new())])
    first, *others = json.loads(content)
    assert len(json.dumps(first)) > 1_000
    assert "result" in first
    assert [(other["id"], other["error"]["code"]) for other in others] == [(2, -32600), (3, -32600)]
    for other in others:
        assert "1000 bytes in all; send the rest anew" in other["error"]["message"]
    assert Task.objects.count() == 1
    outcomes = {exchange.rpc_id: exchange.outcome for exchange in recorded(4)}
    assert outcomes == {"1": "result", "2": "error", "3": "error", None: "notified"}


def test_a_large_list_is_recorded_by_its_ids(post: Post) -> None:
    ids = [json.loads(post(new("x" * 6_000))[1])["result"]["task"]["id"] for _ in range(4)]
    _, content = post(call("ListTasks", {}))
    *_, listed = recorded(5)
    kept = json.loads(response_text(listed))
    assert (kept["tasks"], kept["totalSize"]) == (ids[::-1], 4)
    assert listed.response_bytes == len(content) > 20_000 > len(response_text(listed))


def test_a_small_list_is_recorded_as_it_was(post: Post) -> None:
    post(new())
    _, content = post(call("ListTasks", {"pageSize": 1}))
    *_, listed = recorded(2)
    assert json.loads(response_text(listed)) == json.loads(content)


def test_lists_of_a_batch_come_one_after_another(post: Post, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiving, "BATCH_BYTES", 30_000)
    post(new("x" * 20_000))
    post(new("x" * 20_000))
    _, content = post([call("ListTasks", {}, number) for number in range(8)])
    answers = json.loads(content)
    assert ["result" in answer for answer in answers] == [True] + [False] * 7
    assert "30000 bytes in all" in answers[-1]["error"]["message"]


def test_what_was_read_counts_in_the_account_of_its_caller_until_it_is_sent(
    post: Post, owner: Person, settings: Any
) -> None:
    settings.A2A_OWNER_BODY_BYTES = 100_000
    task = json.loads(post(new("x" * 60_000))[1])["result"]["task"]["id"]
    weighed: list[int] = []
    take = account.take

    def spy(owner_id: int | None, kind: str, amount: int = 1) -> None:
        weighed.append(amount)
        take(owner_id, kind, amount)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(account, "take", spy)
        for _ in range(3):
            assert "result" in json.loads(post(call("GetTask", {"id": task}))[1])
        first, second = json.loads(post([call("GetTask", {"id": task}, 1), call("GetTask", {"id": task}, 2)])[1])
    assert sorted("result" in answer for answer in (first, second)) == [False, True]
    assert [answer["error"]["code"] for answer in (first, second) if "error" in answer] == [-38008]
    assert len(weighed) == 5
    assert not account.amounts["bodies", owner.caller.owner_id]


def test_a_large_answer_that_was_refused_is_not_kept_by_its_error(
    post: Post, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_OWNER_BODY_BYTES = 50_000
    task = json.loads(post(new("x" * 60_000))[1])["result"]["task"]["id"]
    errors: list[RateLimited] = []

    class Spied(RateLimited):
        def __init__(self, *arguments: Any, **facts: str) -> None:
            super().__init__(*arguments, **facts)
            errors.append(self)

    monkeypatch.setattr("tasks_app.callers.accounts.RateLimited", Spied)
    post([call("GetTask", {"id": task}, 1), call("GetTask", {"id": task}, 2)])
    [error] = errors
    assert error.__traceback__ is None


@pytest.mark.parametrize("agent", ["echo", "replies", "form-coroutine"])
@pytest.mark.parametrize("method", ["SendMessage", "SendStreamingMessage"])
def test_a_notification_is_recorded_as_one(post: Post, agent: str, method: str) -> None:
    status, content = post(without_id(new(agent=agent, method=method)))
    assert (status, content) == (204, b"")
    (exchange,) = recorded(1)
    assert (exchange.outcome, exchange.http_status, exchange.rpc_id_type) == ("notified", 204, "absent")


# ---------------------------------------------------------------- refusals


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


def test_a_call_that_does_not_reach_the_rpc_layer_is_recorded_without_its_content(post: Post) -> None:
    _, content = post(b"x" * 1_000_001)
    (exchange,) = recorded(1)
    assert (exchange.outcome, exchange.http_status, exchange.body.request) == ("refused", 413, "POST /jsonrpc")
    assert (exchange.request_bytes, response_text(exchange)) == (1_000_001, content.decode())


def test_what_the_call_brought_along_is_kept(post: Post, owner: Person) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"a2a-version": "0.3", "x-request-id": "req-1", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    post(old(), **headers)
    (exchange,) = recorded(1)
    assert (exchange.version, exchange.request_id, exchange.trace) == ("0.3", "req-1", trace)
    assert (exchange.door, exchange.dialect, exchange.caller_id) == ("http", "a2a-0.3", owner.caller.owner_id)
    assert exchange.duration_us


def test_a_process_that_goes_down_takes_no_new_work_and_says_when_to_ask_again(post: Post) -> None:
    _, content = post(new())
    readers.draining = True
    try:
        status, refusal = post(new())
        assert (status, json.loads(refusal)["error"]["code"]) == (503, -38013)
        assert post(call("GetTask", {"id": task_id(content)}))[0] == 200
    finally:
        readers.draining = False
    found = recorded(3)
    assert [(exchange.http_status, exchange.code) for exchange in found] == [(200, None), (503, -38013), (200, None)]
    assert Task.objects.count() == 1


# ----------------------------------------------------------------- secrets


@pytest.mark.parametrize(
    "secret",
    [
        {"token": "hunter2"},
        {"Password": 'hun"ter2 hunter2'},
        {"api_key": ["hunter2", "x"]},
        {"credentials": "hunter2"},
        {"deep": [{"secret": "hunter2"}]},
        {"token": {"a": {"b": 1}, "c": "hunter2"}},
        {"note": "eyJhbGciOiJI.eyJzdWIiOiIx.hunter2-x"},
        {"note": "tdk_hunter2hunter2hunter2"},
        {"access_token": None, "client_secret": "hunter2"},
        {"secret": ["]", "hunter2"]},
        {"authorization": "Bearer hunter2"},
    ],
    ids=str,
)
def test_secrets_are_redacted_and_the_answer_is_still_shown(post: Post, secret: dict[str, Any]) -> None:
    wire = new(agent="form-coroutine", rpc_id="mine")
    wire["params"]["message"]["metadata"] = secret
    _, content = post(wire)
    assert task_id(content)
    (exchange,) = recorded(1)
    assert "hunter2" not in exchange.body.request
    json.loads(exchange.body.request)
    assert json.loads(response_text(exchange))["id"] == "mine"


def test_a_secret_that_is_masked_in_the_request_is_masked_in_the_answer(post: Post) -> None:
    for method, agent in (("SendMessage", "form-coroutine"), ("SendStreamingMessage", "form-generator")):
        wire = new(agent=agent, method=method)
        wire["params"]["message"]["parts"] += [
            {"text": "key tdk_hunter2hunter2hunter2"},
            {"data": {"password": "hunter2"}},
        ]
        post(wire)
    for exchange in recorded(2):
        assert "hunter2" not in exchange.body.request + response_text(exchange)
        assert "[redacted]" in response_text(exchange)


@pytest.mark.parametrize(
    "body",
    [
        '{"metadata":{"password":"hunter2"},"metadata":{}}',
        '{"token":"hunter2","token":null}',
        '{"credentials"\n:\n"hunter2",}',
        '{"note":"https://me:hunter2@example.org/"}',
        '{"note":"https://me:p@hunter2@example.org/"}',
        '{"note":"https:\\/\\/hunter2@example.org"}',
        '{"url":"https://example.org/?X-Amz-Signature=hunter2"}',
        '{"url":"https://example.org/hook?a=1&access_token=hunter2#x"}',
        '{"url":"https://example.org/?sig=hunter2"}',
        '{"url":"https://example.org/?next=/there?my-token=hunter2?x&b=2"}',
    ],
)
def test_no_way_of_writing_keeps_a_secret(body: str) -> None:
    assert "hunter2" not in redacted(body.encode())


def test_a_body_that_is_too_deep_to_be_written_again_is_refused_and_recorded(post: Post) -> None:
    for depth in (300, 500, 900):
        _, content = post(b'{"token":"hunter2","deep":' + b"[" * depth + b"]" * depth + b"}")
        assert json.loads(content)["error"]["code"] == -32600
    for exchange in recorded(3):
        assert exchange.outcome == "refused"
        assert exchange.body.request.startswith('{"token": [redacted]')


def test_what_is_no_secret_stays() -> None:
    for body in (
        '{"text":"mail me@example.org","n":123456789012345678901234567890,"x":1.10}',
        '{"url":"https://example.org/a@b?design=1&page=2"}',
    ):
        assert redacted(body.encode()) == body


# ---------------------------------------------------- failures to record


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


def test_a_failure_to_record_is_counted_and_changes_no_answer(
    post: Post, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("the disk is full")

    _, content = post(new())
    recorded(1)
    monkeypatch.setattr(recording, "write", fail)
    before = recorder.lost
    _, shown = post(call("GetTask", {"id": task_id(content)}))
    assert task_id(shown) == task_id(content)
    recorder.flush()
    until(lambda: recorder.lost == before + 1, "the loss is counted")
    assert "the disk is full" in caplog.text
    recorded(1)


@pytest.mark.parametrize(
    "wire", [new(), new(agent="replies"), new(agent="form-coroutine")], ids=["quick", "bare", "queued"]
)
def test_a_change_whose_exchange_cannot_be_stored_is_done_without_it(
    post: Post, monkeypatch: pytest.MonkeyPatch, wire: Any
) -> None:
    """Design, section 7: the group is redone without its exchanges."""
    whole = OpenExchange.halves

    def broken(self: OpenExchange, result: Any) -> Any:
        row, body = whole(self, result)
        row.door = None  # type: ignore[assignment]  # what no database takes
        return row, body

    monkeypatch.setattr(OpenExchange, "halves", broken)
    before = recorder.lost
    _, content = post(wire)
    assert "result" in json.loads(content), content
    recorder.flush()
    until(lambda: recorder.lost == before + 1, "the loss is counted")
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


@pytest.fixture
def impatient() -> Iterator[None]:
    """Stops a test that would not end: nothing else interrupts a regular expression."""

    def stop(*_: Any) -> None:
        raise AssertionError("not within 30 s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("text", ["eyJ" * 300_000, "{token " + "a_" * 400_000, "tdk_" * 200_000, "passwd" * 100_000])
def test_a_hostile_text_is_cleaned_in_one_pass(text: str) -> None:
    # With a search that goes back at each letter these took minutes.
    clean = MASK if text.startswith("tdk_") else text
    assert redacted(text.encode()) == clean[:TEXT_BYTES]
    whole = json.loads(redacted(json.dumps({"token": 1, "text": text}).encode()))
    assert whole == {"token": MASK, "text": clean}


def test_a_webhook_is_recorded_without_its_secrets(post: Post, owner: Person, settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True
    _, made = post(new(agent="asks"))
    config = {
        "taskId": task_id(made),
        "id": "mine",
        "url": "http://127.0.0.1:65001/",
        "token": "canary-token",
        "authentication": {"scheme": "Bearer", "credentials": "canary-credentials"},
    }
    _, content = post(call("CreateTaskPushNotificationConfig", config))
    assert b"canary-token" in content
    inline = {"taskPushNotificationConfig": {**config, "taskId": ""}}
    post(new(configuration=inline))
    for method in ("GetTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"):
        post(call(method, {"taskId": task_id(made), "id": "mine"}))
    found = recorded(5)
    assert [row.task_id for row in found[:2]] == [task_id(made)] * 2
    for row in found:
        assert "canary" not in row.body.request + row.body.response + response_text(row)
    assert json.loads(response_text(found[1]))["result"]["id"] == "mine"
    assert json.loads(response_text(found[4]))["result"] == {}


def test_a_page_token_is_no_secret_that_is_looked_for() -> None:
    body = b'{ "nextPageToken": "eyx", "next": {"page_token": 1} }'
    assert redacted(b'{ "nextPageToken": "x" }') == '{ "nextPageToken": "x" }', "it was parsed"
    assert MASK not in redacted(body)
    assert MASK in redacted(b'{"nextPageToken": "x", "token": "y"}')
