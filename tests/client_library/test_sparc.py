"""Our client in SPARC: messages in phases, workflows, batches, memory, named events, and errors with their data."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import httpx
import orjson
import pytest

from a2a.client import SPARC, Client, Retries, SyncClient, Workflow
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    InvalidParams,
    InvalidRequest,
    MemoryNotFound,
    MethodNotFound,
    PhaseRefused,
    TaskNotFound,
    WorkflowNotFound,
)
from a2a.client.updates import text_of
from a2a.memory import StoreMemory
from a2a.requests import Priority, SendMessage
from a2a.states import TaskState
from a2a.types import Interface, Message, Part, PushConfig, Role, Task
from a2a.workflows import PHASES, Phase, SendInPhase
from tests.client_library.faulty import Act, FakeClock, drop, error, faulty, plain, result
from tests.conftest import NO_TLS, PATIENCE, Server, until

pytestmark = pytest.mark.storage
ENTRY = {"namespace": "n", "key": "k", "version": 1, "size": 1}
ENTRY |= {"createdAt": "2026-11-23T08:00:00Z", "updatedAt": "2026-11-23T08:00:00Z"}


def place(url: str) -> Interface:
    return Interface(url=url, binding=SPARC, version="0.2")


def run(server: Server, flow: Callable[[Client], Awaitable[Any]], path: str = "/sparc") -> Any:
    async def work() -> Any:
        interface, retries = place(f"{server.url}{path}"), Retries(times=0)
        async with (
            httpx.AsyncClient(verify=NO_TLS) as http,
            Client(server.url, interface=interface, token=server.owner, http=http, retries=retries) as client,
        ):
            return await flow(client)

    return asyncio.run(work())


async def settled(client: Client, name: str) -> Workflow:
    """Return a workflow that is no longer executed."""
    async with asyncio.timeout(PATIENCE):
        while (workflow := await client.get_workflow(name)).runs_until is not None:  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.05)
    return workflow


@pytest.mark.requirement("SPARC-05", "SPARC-06")
def test_a_workflow_goes_through_its_phases(server: Server) -> None:
    async def flow(client: Client) -> None:
        name = f"workflow-{uuid4()}"
        begun = await client.set_phase(name, Phase.SPECIFICATION, configuration={"depth": 2})
        assert (begun.name, begun.phase, begun.state, begun.configuration) == (name, PHASES[0], "active", {"depth": 2})
        task = await client.send_in_phase("a shop", phase=Phase.SPECIFICATION, workflow=name, priority=Priority.HIGH)
        assert isinstance(task, Task)
        assert text_of(task) == "specification of a shop"
        async with client.stream_in_phase("go on", phase=Phase.PSEUDOCODE, workflow=name) as updates:
            assert "".join([update.text async for update in updates]).startswith("pseudocode after ")
        workflow = await client.execute_workflow(name, "finish it")
        assert (workflow.phase, workflow.runs_until) == (Phase.PSEUDOCODE, Phase.COMPLETION)
        workflow = await settled(client, name)
        assert (workflow.state, [phase.state for phase in workflow.phases]) == ("completed", ["completed"] * 5)
        first = workflow.phases[0]
        assert (first.result_task_id, first.tasks[0].task_id) == (task.id, task.id)
        assert first.artifacts[0].parts == (Part(text="specification of a shop"),)
        assert workflow.metrics["tasksCompleted"] == sum(len(phase.tasks) for phase in workflow.phases)

    run(server, flow)


@pytest.mark.requirement("SPARC-05", "SPARC-10")
def test_a_skipped_phase_is_an_error_with_both_phases(server: Server) -> None:
    async def flow(client: Client) -> None:
        name = f"workflow-{uuid4()}"
        await client.set_phase(name, Phase.SPECIFICATION)
        with pytest.raises(PhaseRefused) as refused:
            await client.set_phase(name, Phase.COMPLETION)
        assert refused.value.code == -33001
        assert refused.value.message == "SPARCPhaseError: Cannot skip intermediate phases"
        details = refused.value.details
        assert (details["currentPhase"], details["requestedPhase"]) == ("specification", "completion")
        with pytest.raises(WorkflowNotFound):
            await client.get_workflow(f"another-{name}")
        with pytest.raises(TaskNotFound) as missing:
            await client.get_task("nothing")
        assert missing.value.details["taskId"] == "nothing"
        with pytest.raises(InvalidParams):
            await client.set_phase("", Phase.SPECIFICATION)
        with pytest.raises(InvalidParams) as empty:
            await client.execute_batch("echo", [])
        assert empty.value.violations == (("tasks", "must have 1 to 1,000 entries, not 0"),)

    run(server, flow)


def test_preferred_agents_are_set_kept_and_cleared(server: Server) -> None:
    async def flow(client: Client) -> None:
        name = f"workflow-{uuid4()}"
        types = [(await client.set_phase(name, PHASES[0], agent_types=wish)).agent_types for wish in (["a"], None, [])]
        assert types == [("a",), ("a",), ()]

    run(server, flow)


@pytest.mark.requirement("SPARC-07")
def test_a_batch_is_a_task_with_a_result_for_each_item(server: Server) -> None:
    async def flow(client: Client) -> None:
        task = await client.send("first", metadata={"agent": "echo"})
        assert isinstance(task, Task)
        message = Message(message_id=str(uuid4()), role=Role.USER, parts=(Part(text="second"),))
        batch = await client.execute_batch("echo", [task.id, message], max_concurrent=2, batch_size=1)
        async with client.subscribe(batch.id) as updates:
            async for _ in updates:
                pass
        whole = await client.get_task(batch.id)
        items: list[Any] = [part.data for part in whole.artifacts[0].parts]
        assert [(item["state"], item["output"]) for item in items] == [
            ("completed", ["first"]),
            ("completed", ["second"]),
        ]

    run(server, flow)


@pytest.mark.requirement("SPARC-08")
def test_the_memory_has_the_methods_that_agents_have(server: Server) -> None:
    async def flow(client: Client) -> None:
        space = f"space-{uuid4()}"
        entry = await client.memory.store("k", {"a": 1}, namespace=space, ttl=60)
        assert (entry.version, entry.expires_at is not None) == (1, True)
        assert (await client.memory.store("k", None, namespace=space, if_version=1)).version == 2
        assert (await client.memory.retrieve("k", namespace=space)).data is None
        with pytest.raises(InvalidParams):
            await client.memory.store("k", 1, namespace=space, if_version=1)
        await client.memory.store("l", {"word": "needle"}, namespace=space)
        page = await client.memory.list(namespace=space, page_size=1)
        rest = await client.memory.list(namespace=space, page_token=page.next_page_token)
        assert [one.key for one in (*page.entries, *rest.entries)] == ["k", "l"]
        found = await client.memory.search("needle", namespace=space)
        assert [one.data for one in found.entries] == [{"word": "needle"}]
        assert [
            one.key for one in (await client.memory.search(namespace=space, field="word", value="needle")).entries
        ] == ["l"]
        await client.memory.delete("k", namespace=space)
        for refused in (client.memory.delete, client.memory.retrieve):
            with pytest.raises(MemoryNotFound):
                await refused("k", namespace=space)
        with pytest.raises(TypeError):
            client.memory.retrieve_now("k")

    run(server, flow)


def test_scripts_need_no_async(server: Server) -> None:
    name = f"script-{uuid4()}"
    with SyncClient(server.url, interface=place(f"{server.url}/sparc"), token=server.owner) as client:
        client.memory.store_now("k", [1], namespace=name)
        assert client.memory.retrieve_now("k", namespace=name).data == [1]
        assert client.set_phase(name, Phase.SPECIFICATION).phase == "specification"
        assert client.get_workflow(name).name == name
        task = client.send_in_phase("x", workflow=name)
        assert isinstance(task, Task)
        assert text_of(task) == "specification of x"
        with client.stream_in_phase("y", workflow=name) as stream:
            assert "".join(update.text for update in stream) == "specification of y"
        assert client.execute_workflow(name, "z", phase=Phase.SPECIFICATION).name == name
        batch = client.execute_batch("echo", [task.id])
        assert batch.metadata == {"batchProcessing": True, "operation": "echo"}
        assert client.capabilities().streaming is True
        # Both go on by themselves and make rows, which other tests of the server count.
        until(lambda: client.get_workflow(name).runs_until is None, "the execution is over")
        until(lambda: client.get_task(batch.id).status.state is TaskState.COMPLETED, "the batch is over")


def test_an_agent_says_what_it_can_do(server: Server) -> None:
    found = run(server, lambda client: client.capabilities(), path="/agents/echo/sparc")
    assert (found.name, found.skills, found.streaming, found.push_notifications) == ("echo", ("echo",), True, True)
    assert found.phases == PHASES


@pytest.mark.requirement("SPARC-04")
def test_a_webhook_goes_in_the_wrapper_of_sparc(server: Server) -> None:
    async def flow(client: Client) -> None:
        task = await client.send("one", metadata={"agent": "asks"})
        assert isinstance(task, Task)
        webhook = PushConfig(id="mine", url="https://nobody.invalid/hook")
        assert (await client.create_push_config(task.id, webhook)).id == "mine"
        assert [one.id for one in (await client.list_push_configs(task.id)).configs] == ["mine"]

    run(server, flow)
    bodies, _ = asked(
        [result({"taskId": "t", "pushNotificationConfig": {"id": "c", "url": "https://a.example/"}})], _hook
    )
    assert bodies[0]["params"] == {"taskId": "t", "config": {"id": "c", "url": "https://a.example/"}}


async def _hook(client: Client) -> Any:
    return await client.create_push_config("t", PushConfig(id="c", url="https://a.example/"))


# ------------------------------------------------------------------ faults


def asked(script: list[Act], flow: Callable[[Client], Awaitable[Any]]) -> tuple[list[Any], Any]:
    """Return the JSON of each request, and the outcome or its error."""

    async def work() -> tuple[list[Any], Any]:
        async with (
            faulty(*script) as server,
            Client("", interface=place(server.url), clock=FakeClock().clock) as client,
        ):
            try:
                outcome: Any = await flow(client)
            except ClientError as problem:
                outcome = problem
            return [request.wire for request in server.asked], outcome

    return asyncio.run(work())


def test_a_stream_is_read_by_its_data_whatever_the_names_of_its_events() -> None:
    ids = {"taskId": "t", "contextId": "c"}
    frames = (
        ("task-status-update", {"kind": "task", "id": "t", "contextId": "c", "status": {"state": "submitted"}}),
        (
            "artifact-update",
            ids | {"kind": "artifact-update", "artifact": {"artifactId": "a", "parts": [{"text": "hi"}]}},
        ),
        ("status-update", ids | {"kind": "status-update", "status": {"state": "completed"}, "final": True}),
    )

    async def flow(client: Client) -> list[Any]:
        return [(update.text, update.state) async for update in client.stream("x")]

    bodies, outcome = asked([named(*frames)], flow)
    assert outcome == [("", "submitted"), ("hi", None), ("", "completed")]
    assert bodies[0]["method"] == "message/stream"


def named(*frames: tuple[str, Any]) -> Act:
    """Answer with a stream of events with names."""

    async def act(request: Any, writer: asyncio.StreamWriter) -> None:
        body = b""
        for number, (name, value) in enumerate(frames, 1):
            wire = orjson.dumps({"jsonrpc": "2.0", "id": request.wire["id"], "result": value})
            body += f"event: {name}\nid: {number}\ndata: ".encode() + wire + b"\n\n"
        await plain(200, body, "text/event-stream")(request, writer)

    return act


def test_work_that_may_have_begun_is_not_begun_again() -> None:
    async def batch(client: Client) -> Any:
        return await client.execute_batch("echo", ["t"])

    async def execution(client: Client) -> Any:
        return await client.execute_workflow("w", "x")

    async def versioned(client: Client) -> Any:
        return await client.perform(StoreMemory(namespace="n", key="k", data=1, if_version=1))

    for flow in (batch, execution, versioned):
        bodies, outcome = asked([drop], flow)
        assert (len(bodies), type(outcome)) == (1, ConnectionLost)


def test_a_write_and_a_deletion_are_sent_again() -> None:
    bodies, outcome = asked([drop, result(ENTRY)], lambda client: client.memory.store("k", 1, namespace="n"))
    assert (len(bodies), outcome.version) == (2, 1)
    gone = error(-32001, "MemoryNotFoundError", {"reason": "MEMORY_NOT_FOUND"})
    bodies, outcome = asked([drop, gone], lambda client: client.memory.delete("k"))
    assert (len(bodies), outcome) == (2, None)
    _, outcome = asked([gone], lambda client: client.memory.delete("k"))
    assert type(outcome) is MemoryNotFound


def test_a_server_without_reasons_is_understood_by_its_numbers() -> None:
    for code, kind in ((-33001, PhaseRefused), (-32001, TaskNotFound), (-32600, InvalidRequest)):
        _, outcome = asked([error(code, "no", {"details": "why"})], lambda client: client.get_workflow("w"))
        assert (type(outcome), outcome.details) == (kind, {"details": "why"})


def test_a_phase_is_never_left_out_in_a_language_without_phases() -> None:
    async def work() -> None:
        message = Message(message_id="m", role=Role.USER, parts=(Part(text="x"),))
        async with faulty(result({"kind": "task", "id": "t"})) as server:
            interface = Interface(url=server.url, binding="JSONRPC", version="0.2")
            async with Client("", interface=interface) as client:
                with pytest.raises(MethodNotFound):
                    await client.perform(SendInPhase(message=message, phase=Phase.SPECIFICATION))
                with pytest.raises(ClientError):
                    await client.perform(SendMessage(message=message))
            assert [request.wire["method"] for request in server.asked] == ["message/send"]

    asyncio.run(work())
