"""Every flow and error of VAPORA's ADR 0003, by a client of its text, against a running server."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.conftest import NO_TLS, Server, running_server
from tests.seeds.vapora import client as vapora
from tests.seeds.vapora.client import A2aClientError, VaporaClient
from tests.support.servers import free_port

pytestmark = pytest.mark.storage
Flow = Callable[[VaporaClient], Awaitable[Any]]
Pause = Callable[[float], Awaitable[None]]
EXAMPLE = {"jsonrpc": "2.0", "error": {"code": "<domain-specific code>", "message": "<human-readable message>"}}
"""The one JSON example of the text, with its places to fill in."""


async def at_once(seconds: float) -> None:
    """Pause for no time."""


def run(url: str, key: str, flow: Flow, *, pause: Pause = at_once, **more: Any) -> Any:
    """Return the outcome of a flow with the server at an address."""

    async def work() -> Any:
        async with httpx.AsyncClient(verify=NO_TLS, headers={"Authorization": f"Bearer {key}"}) as http:
            return await flow(VaporaClient(http, url, pause, **more))

    return asyncio.run(work())


def error_of(url: str, key: str, flow: Flow, **more: Any) -> A2aClientError:
    with pytest.raises(A2aClientError) as caught:
        run(url, key, flow, **more)
    return caught.value


def new_id() -> str:
    return str(uuid4())


def to(agent: str) -> dict[str, Any]:
    return {"metadata": {"agent": agent}}


# ------------------------------------------------------------------ flows


def test_a_task_is_sent_and_got(server: Server) -> None:
    async def flow(client: VaporaClient) -> Any:
        task = await client.send("hello", new_id(), **to("echo"))
        return task, await client.get(task["id"])

    sent, got = run(server.url, server.owner, flow)
    assert sent == got
    assert (got["kind"], got["status"]["state"]) == ("task", "completed")


@pytest.mark.requirement("VAPORA-04", "VAPORA-05")
def test_the_error_flow_of_the_text_ends_in_task_not_found(server: Server) -> None:
    error = error_of(server.url, server.owner, lambda client: client.get(new_id()))
    assert (type(error), error.status) == (vapora.TaskNotFound, 404)  # type: ignore[attr-defined]  # the client sets it


@pytest.mark.requirement("VAPORA-02", "VAPORA-03")
def test_a_transition_that_the_state_forbids_is_a_domain_error(server: Server) -> None:
    async def flow(client: VaporaClient) -> Any:
        task = await client.send("hello", new_id(), **to("echo"))
        return await client.cancel(task["id"])

    error = error_of(server.url, server.owner, flow)
    assert isinstance(error, vapora.ServerError)
    assert (error.code, error.status) == (-32000, 409)  # type: ignore[attr-defined]  # the client sets it
    assert error.message == "Task cannot be canceled"


@pytest.mark.requirement("VAPORA-02", "VAPORA-03")
@pytest.mark.parametrize("metadata", [{"skill": "nobody"}, {"agent": "nobody"}], ids=str)
def test_an_unknown_skill_is_a_domain_error(server: Server, metadata: dict[str, str]) -> None:
    error = error_of(server.url, server.owner, lambda client: client.send("x", new_id(), metadata=metadata))
    assert isinstance(error, vapora.ServerError)
    assert error.code == -32000
    assert error.message.startswith("No such agent or skill: there is no ")


@pytest.mark.requirement("VAPORA-03")
@pytest.mark.parametrize(
    ("body", "code"),
    [(b"{", -32700), (b"[]", -32600), (b'{"jsonrpc":"1.0","id":1,"method":"tasks/get"}', -32600)],
    ids=["not JSON", "an empty batch", "another version"],
)
def test_errors_of_the_envelope_have_the_codes_of_json_rpc(server: Server, body: bytes, code: int) -> None:
    headers = {"Authorization": f"Bearer {server.owner}", "Content-Type": "application/json"}
    answer = httpx.post(f"{server.url}/a2a", content=body, headers=headers, verify=NO_TLS).json()
    assert (answer["error"]["code"], answer["jsonrpc"]) == (code, "2.0")


@pytest.mark.requirement("VAPORA-03", "VAPORA-05")
@pytest.mark.parametrize(("method", "code"), [("tasks/unknown", -32601), ("tasks/list", -32602)])
def test_a_wrong_method_and_wrong_params_are_errors_of_the_server(server: Server, method: str, code: int) -> None:
    error = error_of(server.url, server.owner, lambda client: client.call(method, {"limit": 0}))
    assert isinstance(error, vapora.ServerError)
    assert error.code == code


@pytest.mark.requirement("VAPORA-03")
def test_the_example_of_the_text_is_what_the_server_answers(server: Server) -> None:
    """An answer has the id too, which JSON-RPC demands, and details of the error."""
    wire = {"jsonrpc": "2.0", "id": 7, "method": "tasks/get", "params": {"id": new_id()}}
    headers = {"Authorization": f"Bearer {server.owner}"}
    answer = httpx.post(f"{server.url}/a2a", json=wire, headers=headers, verify=NO_TLS).json()
    assert answer.keys() == EXAMPLE.keys() | {"id"}
    assert answer["error"].keys() == {"code", "message", "data"}
    filled = {"code": answer["error"]["code"], "message": answer["error"]["message"]}
    assert EXAMPLE | {"error": filled} == {name: value for name, value in answer.items() if name != "id"} | {
        "error": {"code": -32000, "message": "Task not found"}
    }
    assert (answer["id"], answer["error"]["data"]["reason"]) == (7, "TASK_NOT_FOUND")


def test_an_absent_webhook_is_not_an_absent_task(server: Server) -> None:
    async def flow(client: VaporaClient) -> Any:
        task = await client.send("hello", new_id(), **to("echo"))
        return await client.call("tasks/pushNotificationConfig/get", {"id": task["id"]})

    error = error_of(server.url, server.owner, flow)
    assert isinstance(error, vapora.ServerError)
    assert error.code == -32602


# -------------------------------------------------------- on the way there


@pytest.mark.requirement("VAPORA-05", "VAPORA-08")
def test_no_server_is_a_refused_connection_after_growing_pauses() -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    error = error_of(f"http://127.0.0.1:{free_port()}", "", lambda client: client.get("t"), pause=pause)
    assert isinstance(error, vapora.ConnectionRefused)
    assert [0.8 <= seconds / plain <= 1.2 for seconds, plain in zip(pauses, (0.1, 0.2, 0.4), strict=True)] == [True] * 3


@pytest.mark.requirement("VAPORA-05")
def test_a_slow_agent_is_a_timeout_of_the_client(server: Server) -> None:
    def flow(client: VaporaClient) -> Awaitable[Any]:
        return client.send("x", new_id(), **to("sleeper"))

    assert isinstance(error_of(server.url, server.owner, flow, seconds=0.1, retries=0), vapora.Timeout)


@pytest.mark.requirement("VAPORA-05")
def test_a_path_that_is_not_there_is_an_error_of_http(server: Server) -> None:
    error = error_of(f"{server.url}/nothing", server.owner, lambda client: client.get("t"))
    assert isinstance(error, vapora.HttpError)


@pytest.mark.requirement("VAPORA-05")
def test_a_wrong_key_is_an_error_of_the_server_that_is_not_repeated(server: Server) -> None:
    pauses: list[float] = []

    async def pause(seconds: float) -> None:
        pauses.append(seconds)

    error = error_of(server.url, "tdk_nobody", lambda client: client.get("t"), pause=pause)
    assert isinstance(error, vapora.ServerError)
    assert (error.code, error.status, pauses) == (-32000, 401, [])  # type: ignore[attr-defined]  # the client sets it


# ------------------------------------------------------------- a bad state


@pytest.mark.requirement("VAPORA-04", "VAPORA-08", "VAPORA-12")
def test_a_database_that_fails_is_a_fault_that_passes_when_it_is_mended(tmp_path: Path) -> None:
    """The server answers 5xx meanwhile, so that the client calls again, and gets its task in the end."""
    with running_server(tmp_path) as server:

        async def mend(seconds: float) -> None:
            server.execute("ALTER TABLE moved RENAME TO tasks_app_task")

        async def flow(client: VaporaClient) -> Any:
            task = await client.send("hello", new_id(), **to("echo"))
            server.execute("ALTER TABLE tasks_app_task RENAME TO moved")
            try:
                return task, await client.get(task["id"])
            except A2aClientError:
                await mend(0)
                raise

        sent, got = run(server.url, server.owner, flow, pause=mend)
        assert sent == got
        headers = {"Authorization": "Bearer nobody"}
        paths = {path: httpx.get(server.url + path, headers=headers, verify=NO_TLS) for path in ("/health", "/metrics")}
        assert {path: response.status_code for path, response in paths.items()} == {"/health": 200, "/metrics": 401}
