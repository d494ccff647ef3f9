"""Retries: which calls are made again, how often, and after how long."""

import re
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import httpx
import orjson
import pytest

from a2a.client import RPC, Client, ClientError, Retries, Timeouts, errors
from a2a.requests import GetTask
from a2a.types import Interface, Message, Task
from tests.client_library.faulty import (
    TODAY,
    Act,
    FakeClock,
    chunk,
    drop,
    error,
    events,
    faulty,
    half,
    plain,
    rest,
    result,
    rpc,
    stall,
    status,
    task,
)

DONE = result({"task": task(texts=["Hello"])})
SPACING = [0.1, 0.2, 0.4]


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(drop, id="a dropped connection"),
        pytest.param(half, id="half a body"),
        pytest.param(plain(500), id="500"),
        pytest.param(plain(502), id="502"),
        pytest.param(plain(503), id="503"),
        pytest.param(plain(429), id="429"),
        pytest.param(error(-32603, "Internal error"), id="an internal error"),
        pytest.param(error(-38013, "try again", [{"reason": "UNAVAILABLE"}], 503), id="unavailable"),
    ],
)
@pytest.mark.requirement("ADR-07", "VAPORA-08")
async def test_a_fault_that_may_pass_is_tried_again_with_growing_pauses(fault: Act) -> None:
    fake = FakeClock()
    async with faulty(fault, fault, fault, DONE) as server, rpc(server, fake) as client:
        reply = await client.send("Hi")
    assert isinstance(reply, Task)
    assert fake.pauses == SPACING
    assert len({asked.wire["params"]["message"]["messageId"] for asked in server.asked}) == 1
    assert len(server.asked) == 4


@pytest.mark.requirement("ADR-07")
async def test_after_three_repetitions_the_last_error_is_raised() -> None:
    fake = FakeClock()
    async with faulty(plain(500)) as server, rpc(server, fake) as client:
        with pytest.raises(errors.Internal, match="4 attempts") as caught:
            await client.get_task("t")
    assert (caught.value.retryable, caught.value.status, len(server.asked)) == (True, 500, 4)
    assert fake.pauses == SPACING


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 409, 413, 422])
@pytest.mark.requirement("ADR-07", "VAPORA-08")
async def test_other_refusals_are_final(status: int) -> None:
    fake = FakeClock()
    async with faulty(plain(status)) as server, rpc(server, fake) as client:
        with pytest.raises(ClientError) as caught:
            await client.get_task("t")
    assert (caught.value.retryable, caught.value.status) == (False, status)
    assert (fake.pauses, len(server.asked)) == ([], 1)


async def test_a_refusal_is_judged_by_its_reason_whatever_its_status() -> None:
    fake = FakeClock()
    gone = error(-32001, "Task not found", [{"reason": "TASK_NOT_FOUND"}], status=500)
    async with faulty(gone) as server, rpc(server, fake) as client:
        with pytest.raises(errors.TaskNotFound):
            await client.get_task("t")
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("header", "pause"), [("7", 7.0), (formatdate(TODAY + 9, usegmt=True), 9.0), ("soon", 0.1), ("0", 0.1)]
)
async def test_the_server_says_how_long_to_wait(header: str, pause: float) -> None:
    fake = FakeClock()
    async with faulty(plain(503, Retry_After=header), DONE) as server, rpc(server, fake) as client:
        await client.send("Hi")
    assert fake.pauses == [pause]


async def test_a_date_without_a_zone_is_in_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        fake = FakeClock()
        header = formatdate(TODAY + 9, localtime=False, usegmt=False)
        assert header.endswith("-0000")
        async with faulty(plain(503, Retry_After=header), DONE) as server, rpc(server, fake) as client:
            await client.send("Hi")
        assert fake.pauses == [9.0]
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    ("details", "wait"),
    [
        ([{"reason": "RATE_LIMITED", "metadata": {"retryAfter": "7"}}], 7.0),
        ({"reason": "RATE_LIMITED", "retryAfter": 7}, 7.0),
        ({"reason": "RATE_LIMITED", "retryAfter": "soon"}, 0.1),
        ({"reason": "RATE_LIMITED", "retryAfter": "-7"}, 0.1),
    ],
)
async def test_details_say_how_long_to_wait_where_no_header_does(details: Any, wait: float) -> None:
    fake = FakeClock()
    async with faulty(error(-38008, "Too much", details, 429), DONE) as server, rpc(server, fake) as client:
        await client.send("Hi")
    assert fake.pauses == [wait]


async def test_a_server_that_asks_for_a_long_pause_is_not_called_again() -> None:
    fake = FakeClock()
    async with faulty(plain(429, Retry_After="3600"), DONE) as server, rpc(server, fake) as client:
        with pytest.raises(errors.RateLimited) as caught:
            await client.send("Hi")
    assert (caught.value.retry_after, fake.pauses, len(server.asked)) == (3600.0, [], 1)


@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.8), (1.0, 1.2)])
@pytest.mark.requirement("VAPORA-08")
async def test_pauses_vary_by_a_fifth(chance: float, share: float) -> None:
    fake = FakeClock(chance=chance)
    async with faulty(drop) as server, rpc(server, fake) as client:
        with pytest.raises(errors.ConnectionLost):
            await client.get_task("t")
    assert fake.pauses == [pytest.approx(pause * share) for pause in SPACING]


@pytest.mark.parametrize("client_of", [rpc, rest], ids=["JSON-RPC", "REST"])
@pytest.mark.requirement("ACP-20", "ADR-06")
async def test_a_server_that_stalls_runs_into_the_limit_of_its_method(client_of: Callable[..., Client]) -> None:
    fake = FakeClock()
    limits = Timeouts(request=60, methods={GetTask: 0.05})
    async with faulty(stall) as server, client_of(server, fake, timeouts=limits) as client:
        with pytest.raises(errors.Timeout) as caught:
            await client.get_task("t")
    assert (caught.value.attempts, fake.pauses) == (4, SPACING)


async def test_no_server_is_told_with_its_address_and_what_to_do() -> None:
    fake = FakeClock()
    async with faulty(drop) as server:
        pass
    async with rpc(server, fake) as client:
        with pytest.raises(errors.ConnectionRefused, match=re.escape(server.url)) as caught:
            await client.get_task("t")
    assert "Check the address" in str(caught.value)
    assert (caught.value.attempts, caught.value.processed) == (4, False)


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", b'{"jsonrpc":"2.0","id":1,"result":{"id":5}}', b'{"jsonrpc":"2.0","id":1,"result":{}}']
)
async def test_an_answer_that_is_not_a2a_is_not_asked_for_again(body: bytes) -> None:
    fake = FakeClock()
    async with faulty(plain(200, body)) as server, rpc(server, fake) as client:
        with pytest.raises(errors.InvalidResponse, match=r"GetTask|not JSON-RPC"):
            await client.get_task("t")
    assert len(server.asked) == 1


async def test_an_answer_that_is_too_large_is_not_read() -> None:
    fake = FakeClock()
    huge = result({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "x" * 5_000}]}})
    async with faulty(huge) as server, rpc(server, fake, largest=1_000) as client:
        with pytest.raises(errors.InvalidResponse, match="more than 1000 bytes"):
            await client.send("Hi")


@pytest.mark.parametrize(
    ("fault", "calls"),
    [(drop, 1), (plain(500), 1), (plain(503), 2), (plain(429), 2)],
    ids=["dropped", "500", "503", "429"],
)
async def test_a_message_that_may_have_arrived_is_not_repeated_if_the_caller_says_so(fault: Act, calls: int) -> None:
    fake = FakeClock()
    async with faulty(fault, DONE) as server, rpc(server, fake, retries=Retries(resend=False)) as client:
        if calls == 1:
            with pytest.raises(ClientError):
                await client.send("Hi")
        else:
            await client.send("Hi")
    assert len(server.asked) == calls


async def test_a_cancellation_whose_answer_was_lost_is_a_success() -> None:
    fake = FakeClock()
    gone = error(-32002, "Task cannot be canceled")
    async with faulty(drop, gone, result(task("TASK_STATE_CANCELED"))) as server, rpc(server, fake) as client:
        assert (await client.cancel_task("t")).status.state == "canceled"
    async with faulty(gone) as server, rpc(server, fake) as client:
        with pytest.raises(errors.TaskNotCancelable):
            await client.cancel_task("t")


async def test_a_webhook_that_is_registered_again_has_one_id() -> None:
    fake = FakeClock()
    config = {"id": "w", "taskId": "t", "url": "https://example.com/"}
    async with faulty(drop, result(config)) as server, rpc(server, fake) as client:
        assert (await client.create_push_config("t", "https://example.com/")).id == "w"
    assert len({asked.wire["params"]["id"] for asked in server.asked}) == 1


async def test_a_removal_whose_answer_was_lost_is_a_success() -> None:
    fake = FakeClock()
    gone = error(-32001, "Task not found")
    async with faulty(drop, gone) as server, rpc(server, fake) as client:
        await client.delete_push_config("t", "w")
    async with faulty(gone) as server, rpc(server, fake) as client:
        with pytest.raises(errors.TaskNotFound):
            await client.delete_push_config("t", "w")


async def test_a_bare_reply_is_a_message() -> None:
    fake = FakeClock()
    said = {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hello"}]}
    async with faulty(result({"message": said})) as server, rpc(server, fake) as client:
        reply = await client.send("Hi")
    assert isinstance(reply, Message)
    assert reply.text == "Hello"
    assert server.asked[0].headers["a2a-version"] == "1.0"


def test_every_reason_of_the_protocol_has_a_class_of_its_own() -> None:
    from a2a import errors as protocol

    assert set(errors.REASONS) == {error.reason for error in protocol.ALL}
    assert all(kind.advice for kind in errors.REASONS.values())
    assert Client.send.__doc__


# -------------------------------------------------------------------- REST

FAULTS = [
    pytest.param(drop, id="a dropped connection"),
    pytest.param(half, id="half a body"),
    pytest.param(plain(500), id="500"),
    pytest.param(plain(503), id="503"),
    pytest.param(plain(429), id="429"),
]


@pytest.mark.parametrize("fault", FAULTS)
async def test_over_rest_the_same_faults_are_tried_again(fault: Act) -> None:
    fake, done = FakeClock(), plain(200, orjson.dumps({"task": task(texts=["Hello"])}))
    async with faulty(fault, fault, fault, done) as server, rest(server, fake) as client:
        assert isinstance(await client.send("Hi"), Task)
    assert fake.pauses == SPACING
    assert len({asked.wire["message"]["messageId"] for asked in server.asked}) == 1
    assert [(asked.verb, asked.path) for asked in server.asked] == [("POST", "/message:send")] * 4


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 408, 409, 413, 422])
async def test_over_rest_other_refusals_are_final(status: int) -> None:
    fake = FakeClock()
    async with faulty(plain(status)) as server, rest(server, fake) as client:
        with pytest.raises(ClientError) as caught:
            await client.get_task("t")
    assert (caught.value.status, fake.pauses, len(server.asked)) == (status, [], 1)


async def test_over_rest_a_server_says_how_long_to_wait() -> None:
    fake, done = FakeClock(), plain(200, orjson.dumps(task()))
    script = [plain(503, Retry_After="7"), plain(429, Retry_After="2"), done]
    async with faulty(*script) as server, rest(server, fake) as client:
        await client.get_task("t")
    assert fake.pauses == [7.0, 2.0]


async def test_over_rest_a_broken_stream_resumes_after_the_last_id() -> None:
    fake, begin = FakeClock(), {"task": task("TASK_STATE_WORKING")}
    script = [
        events(("1", begin), ("2", chunk("Hel"))),
        plain(503, Retry_After="3"),
        events(
            ("2", {"task": task("TASK_STATE_WORKING", ["Hel"])}),
            ("3", chunk("lo")),
            ("4", status("TASK_STATE_COMPLETED")),
        ),
    ]
    async with faulty(*script) as server, rest(server, fake) as client:
        updates = [update async for update in client.stream("Hi")]
    assert [update.id for update in updates] == ["1", "2", "3", "4"]
    assert [asked.headers.get("last-event-id") for asked in server.asked] == [None, "2", "2"]
    assert fake.pauses == [0.1, 3.0]


# ------------------------------------------------------------------- limits


@pytest.mark.requirement("ACP-20")
async def test_limits_of_time_are_those_of_the_call() -> None:
    limits: list[dict[str, float]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        limits.append(request.extensions["timeout"])
        return httpx.Response(200, json={"jsonrpc": "2.0", "id": None, "result": task()})

    for timeouts in (None, Timeouts(methods={GetTask: 600.0}), Timeouts(connect=1.0, request=2.0)):
        transport = httpx.MockTransport(answer)
        interface = Interface(url="http://a/", binding=RPC, version="1.0")
        async with httpx.AsyncClient(transport=transport) as http:
            await Client("http://a/", interface=interface, http=http, timeouts=timeouts).get_task("t")
    assert [(limit["connect"], limit["read"]) for limit in limits] == [(5.0, 30.0), (5.0, 600.0), (1.0, 2.0)]
