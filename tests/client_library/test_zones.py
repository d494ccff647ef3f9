"""Our client in zones: waiting and polling, questions, files, errors with classes, and calls that are sent again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from a2a.client import ZONE, Client, Retries, SyncClient
from a2a.client.errors import (
    ClientError,
    InvalidAgentResponse,
    InvalidParams,
    MethodNotFound,
    ServerTimeout,
    TaskNotFound,
    Unauthenticated,
    UnknownAgent,
)
from a2a.requests import Execute, GetTask
from a2a.types import Interface, Message, Part, Role
from tests.client_library.faulty import Act, FakeClock, drop, error, faulty, plain, result
from tests.conftest import NO_TLS, PATIENCE, Server

pytestmark = pytest.mark.storage
TOKEN = "xoxb-never-stored-anywhere"
CHAT = {"channel": "C1", "bot_token": TOKEN}
DONE = {"status": "success", "response_text": "done", "correlation_id": "corr", "task_id": "t"}


def place(url: str) -> Interface:
    return Interface(url=f"{url}/jsonrpc", binding=ZONE, version="1.0")


def run(server: Server, flow: Callable[[Client], Awaitable[Any]], **options: Any) -> Any:
    async def work() -> Any:
        options.setdefault("token", server.owner)
        async with (
            httpx.AsyncClient(verify=NO_TLS) as http,
            Client(server.url, interface=place(server.url), http=http, retries=Retries(times=0), **options) as client,
        ):
            return await flow(client)

    return asyncio.run(work())


@pytest.mark.requirement("ZONE-01", "ZONE-11")
def test_a_call_waits_for_its_task(server: Server) -> None:
    facts = {"correlation_id": "corr-1", "thread_ts": "1.0", "team_id": "T1", "user_id": "U1"}
    task = run(server, lambda client: client.execute("hello", agent="form-coroutine", **CHAT, **facts))
    assert (task.status.state, task.artifacts[0].parts) == ("completed", (Part(text="hello"),))
    assert task.metadata == {"zone": {"correlation_id": "corr-1"}}
    assert run(server, lambda client: client.get_task(task.id)) == task


@pytest.mark.requirement("ZONE-11")
def test_a_call_that_does_not_wait_is_polled(server: Server) -> None:
    async def flow(client: Client) -> None:
        task = await client.execute("hello", agent="waits", wait=False, **CHAT)
        assert task.status.state == "working"
        task = await client.execute("hello", agent="waits", wait=0.01, **CHAT)
        assert task.status.state == "working"
        task = await client.execute("hello", agent="form-coroutine", wait=PATIENCE, **CHAT)
        assert task.status.state == "completed"
        task = await client.execute("hello", agent="form-coroutine", wait=False, **CHAT)
        while task.status.state == "working":
            task = await client.get_task(task.id)
        assert (task.status.state, task.artifacts[0].parts[0].text) == ("completed", "hello")

    run(server, flow)


def test_a_question_is_answered_by_a_further_call(server: Server) -> None:
    async def flow(client: Client) -> None:
        task = await client.execute("one", agent="asks", **CHAT)
        assert (task.status.state, task.status.message.text, task.artifacts) == ("input_required", "Which one?", ())  # type: ignore[union-attr]
        task = await client.execute("two", task_id=task.id, **CHAT)
        assert (task.status.state, task.artifacts[0].parts[0].text) == ("completed", "one and two")

    run(server, flow)


def test_files_go_in_and_skipped_ones_are_named(server: Server) -> None:
    small = Part(raw=b"abc", filename="a.txt", media_type="text/plain")
    message = Message(message_id="zone-files", role=Role.USER, parts=(Part(text="look"), small))
    task = run(server, lambda client: client.execute(message, agent="files", **CHAT))
    assert task.status.state == "completed"
    large = Part(url="https://files.example.com/large.bin", filename="large.bin", metadata={"size": 11_000_000})
    message = Message(message_id="zone-large", role=Role.USER, parts=(Part(text="look"), large))
    task = run(server, lambda client: client.execute(message, agent="echo", **CHAT))
    ((skipped),) = task.metadata["zone"]["skipped_attachments"]
    assert (skipped["name"], "bytes" in skipped["reason"]) == ("large.bin", True)


def test_the_card_is_read_by_a_call_and_scripts_need_no_async(server: Server) -> None:
    with SyncClient(server.url, interface=place(server.url), token=server.owner) as client:
        assert {skill.id for skill in client.extended_card().skills} >= {"echo"}
        assert client.execute("hello", agent="echo", **CHAT).artifacts[0].parts[0].text == "hello"


@pytest.mark.requirement("ZONE-07")
@pytest.mark.parametrize(
    ("agent", "kind", "code"),
    [
        ("raises", InvalidAgentResponse, -32603),
        ("sleeper", ServerTimeout, -32001),
        ("rejects", InvalidParams, -32602),
        ("nobody", UnknownAgent, -38005),
    ],
)
def test_an_error_has_its_class_and_its_data(server: Server, agent: str, kind: type[ClientError], code: int) -> None:
    with pytest.raises(kind) as refused:
        run(server, lambda client: client.execute("x", agent=agent, **CHAT))
    assert (refused.value.code, refused.value.details["reason"]) == (code, kind.reason)
    assert ("taskId" in refused.value.details) is (agent != "nobody")
    assert TOKEN not in str(refused.value.details) + str(refused.value)


def test_refusals_of_callers_and_tasks_have_their_classes(server: Server) -> None:
    with pytest.raises(Unauthenticated):
        run(server, lambda client: client.execute("x", **CHAT), token="nobody's")
    with pytest.raises(TaskNotFound):
        run(server, lambda client: client.get_task("nothing"))


def test_a_part_without_a_place_in_zones_is_refused_before_it_is_sent(server: Server) -> None:
    parts = (Part(text="x"), Part(data={"a": 1}))
    for message in (
        Message(message_id="m", role=Role.USER, parts=parts),
        Message(message_id="m", role=Role.USER, parts=parts[:1], context_id="c"),
    ):
        with pytest.raises(InvalidParams) as refused:
            run(server, lambda client, message=message: client.execute(message, **CHAT))
        assert refused.value.status is None
    with pytest.raises(MethodNotFound):
        run(server, lambda client: client.send("x"))
    with pytest.raises(MethodNotFound):
        run(server, lambda client: client.cancel_task("t"))


def asked(script: list[Act], message: str | Message = "x", **options: Any) -> tuple[list[Any], Any]:
    """Return the JSON of each request, and the outcome or its error."""

    async def work() -> tuple[list[Any], Any]:
        async with faulty(*script) as server:
            interface = Interface(url=server.url, binding=ZONE, version="1.0")
            async with Client(server.url, interface=interface, clock=FakeClock().clock) as client:
                try:
                    outcome: Any = await client.execute(message, **CHAT, **options)
                except ClientError as problem:
                    outcome = problem
            return [request.wire for request in server.asked], outcome

    return asyncio.run(work())


@pytest.mark.parametrize("fault", [plain(503), drop], ids=["503", "lost"])
def test_a_call_is_sent_again_under_its_key(fault: Act) -> None:
    wires, outcome = asked([fault, fault, result(DONE)])
    assert (outcome.id, len(wires)) == ("t", 3)
    assert len({wire["params"]["idempotency_key"] for wire in wires}) == 1


def test_files_are_attachments_and_texts_are_lines() -> None:
    far = Part(url="https://files.example.com/b.txt", filename="b.txt")
    parts = (Part(text="one"), Part(raw=b"abc", media_type="text/plain"), far, Part(text="two"))
    (wire,), _ = asked([result(DONE)], message=Message(message_id="m", role=Role.USER, parts=parts))
    assert wire["params"] == CHAT | {
        "text": "one\ntwo",
        "wait": True,
        "idempotency_key": "m",
        "attachments": [
            {"mimetype": "text/plain", "content": "YWJj"},
            {"name": "b.txt", "url": "https://files.example.com/b.txt"},
        ],
    }


def test_a_server_that_accepts_instead_of_waiting_is_polled() -> None:
    accepted = DONE | {"status": "accepted", "response_text": ""}
    wires, outcome = asked([result(accepted), result(accepted), result(DONE)])
    assert [wire["method"] for wire in wires] == ["execute_task", "get_task", "get_task"]
    assert (wires[0]["params"]["wait"], wires[1]["params"]) == (True, {"task_id": "t"})
    assert (outcome.status.state, outcome.artifacts[0].parts[0].text) == ("completed", "done")
    wires, outcome = asked([result(accepted)], wait=False)
    assert (len(wires), wires[0]["params"]["wait"], outcome.status.state) == (1, False, "working")


def test_a_failure_as_a_result_is_a_task_that_has_failed() -> None:
    failed = DONE | {"status": "error", "error": {"code": -32603, "message": "No paper."}}
    _, outcome = asked([result(failed)])
    assert (outcome.status.state, outcome.status.message.text) == ("failed", "No paper.")
    assert outcome.artifacts[0].parts[0].text == "done"


@pytest.mark.requirement("ZONE-07")
def test_a_server_without_reasons_is_understood_by_its_numbers() -> None:
    for code, kind in ((-32001, ServerTimeout), (-32602, InvalidParams), (-32601, MethodNotFound)):
        assert type(asked([error(code, "no")])[1]) is kind


def test_a_result_that_is_none_is_told() -> None:
    for wrong in ({}, DONE | {"status": "perhaps"}, DONE | {"task_id": 7}, [DONE]):
        _, outcome = asked([result(wrong)])
        assert type(outcome).__name__ == "InvalidResponse"


def test_a_request_without_a_secret_is_not_sent() -> None:
    async def work() -> None:
        async with faulty(result(DONE)) as server:
            interface = Interface(url=server.url, binding=ZONE, version="1.0")
            async with Client(server.url, interface=interface) as client:
                message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
                with pytest.raises(InvalidParams, match="bot_token"):
                    await client.perform(Execute(message=message))
                await client.perform(GetTask(id="t"))
            assert len(server.asked) == 1

    asyncio.run(work())
