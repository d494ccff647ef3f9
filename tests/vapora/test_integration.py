"""Our client against a server: each error of VAPORA's client is one class, and its calls are repeated as VAPORA's."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from a2a.client import VAPORA, Client, ClientError, Timeouts, errors
from a2a.types import Interface, Task
from tests.client_library.faulty import Act, FakeClock, Faulty, drop, error, faulty, plain, result, stall
from tests.conftest import NO_TLS, PATIENCE, Server
from tests.support.servers import free_port

GONE = {"code": -32000, "message": "Task 'x' is unknown"}
TASK = {
    "kind": "task",
    "id": "t",
    "contextId": "c",
    "status": {"state": "completed", "timestamp": "2026-03-02T09:15:05.250Z"},
}


@asynccontextmanager
async def calling(server: Server, key: str | None = None) -> AsyncIterator[Client]:
    """Return a client of the real server, at the path of VAPORA."""
    async with httpx.AsyncClient(verify=NO_TLS) as http:
        yield Client(
            server.url,
            token=key or server.owner,
            interface=Interface(url=f"{server.url}/a2a", binding=VAPORA, version="0.3"),
            timeouts=Timeouts(request=PATIENCE),
            http=http,
        )


def client_of(server: Faulty, fake: FakeClock, **options: Any) -> Client:
    interface = Interface(url=server.url, binding=VAPORA, version="0.3")
    options = {"timeouts": Timeouts(request=5)} | options
    return Client(server.url, interface=interface, clock=fake.clock, **options)


async def failure(server: Faulty, fake: FakeClock, **options: Any) -> ClientError:
    """Return the error of a call."""
    async with client_of(server, fake, **options) as client:
        with pytest.raises(ClientError) as caught:
            await client.get_task("t")
    return caught.value


# ---------------------------------------------------------- a real server


@pytest.mark.requirement("VAPORA-05", "VAPORA-09")
async def test_an_absent_task_is_an_error_of_its_own(server: Server) -> None:
    async with calling(server) as client:
        with pytest.raises(errors.TaskNotFound) as caught:
            await client.get_task("missing")
    assert (caught.value.code, caught.value.status, caught.value.retryable) == (-32000, 404, False)


@pytest.mark.requirement("VAPORA-05", "VAPORA-09")
async def test_a_refusal_of_the_server_has_its_code_and_its_message(server: Server) -> None:
    async with calling(server) as client:
        with pytest.raises(errors.ServerError) as caught:
            await client.send("hello", metadata={"agent": "nobody"})
    assert (type(caught.value), caught.value.code) == (errors.UnknownAgent, -32000)
    assert caught.value.message == (
        'No such agent or skill: there is no agent "nobody"; GET /agents/ lists the agents and their skills'
    )


@pytest.mark.requirement("VAPORA-02", "VAPORA-09")
async def test_a_wrong_state_a_wrong_field_and_a_wrong_key_are_told_apart(server: Server) -> None:
    async with calling(server) as client:
        task = await client.send("hello", metadata={"agent": "echo"})
        assert isinstance(task, Task)
        with pytest.raises(errors.TaskNotCancelable) as ended:
            await client.cancel_task(task.id)
        with pytest.raises(errors.InvalidParams) as wrong:
            await client.list_tasks(page_size=1_000_000)
    async with calling(server, "tdk_nobody") as client:
        with pytest.raises(errors.Unauthenticated) as stranger:
            await client.get_task("t")
    assert (ended.value.details["current"], ended.value.details["target"]) == ("completed", "canceled")
    assert [each.value.status for each in (ended, wrong, stranger)] == [409, 400, 401]
    assert [each.value.code for each in (ended, wrong, stranger)] == [-32000, -32602, -32000]


# ------------------------------------------- servers of VAPORA, and faults


@pytest.mark.requirement("VAPORA-05", "VAPORA-09")
async def test_a_server_that_sends_no_reason_is_understood_by_the_status() -> None:
    async with faulty(error(GONE["code"], GONE["message"], status=404)) as server:
        raised = await failure(server, FakeClock())
    assert isinstance(raised, errors.TaskNotFound)
    assert (raised.code, raised.message) == (-32000, GONE["message"])


@pytest.mark.requirement("VAPORA-05", "VAPORA-09")
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        pytest.param(drop, errors.HttpError, id="HttpError of a connection"),
        pytest.param(plain(418), errors.HttpError, id="HttpError of a status"),
        pytest.param(error(-32000, "Task not found", status=404), errors.TaskNotFound, id="TaskNotFound"),
        pytest.param(error(-32000, "the state is final", status=400), errors.ServerError, id="ServerError"),
        pytest.param(stall, errors.Timeout, id="Timeout"),
        pytest.param(plain(200, b"<html>"), errors.InvalidResponse, id="InvalidResponse"),
        pytest.param(error(-32603, "io", status=500), errors.Internal, id="InternalError"),
    ],
)
async def test_each_error_of_vaporas_client_is_one_class(fault: Act, kind: type[ClientError]) -> None:
    async with faulty(fault) as server:
        raised = await failure(server, FakeClock(), timeouts=Timeouts(request=0.2 if kind is errors.Timeout else 30))
    assert isinstance(raised, kind)


@pytest.mark.requirement("VAPORA-05", "VAPORA-09")
async def test_a_server_that_does_not_run_refuses_the_connection() -> None:
    raised = await failure(Faulty(f"http://127.0.0.1:{free_port()}", []), FakeClock())
    assert isinstance(raised, errors.ConnectionRefused)


@pytest.mark.requirement("VAPORA-08")
@pytest.mark.parametrize(
    "fault",
    [drop, plain(500), plain(502), error(-32000, "unavailable", status=503), error(-32603, "io", status=500)],
    ids=["the network", "500", "502", "a domain error with 503", "an internal error with 500"],
)
async def test_network_and_5xx_are_tried_again_after_growing_pauses(fault: Act) -> None:
    fake = FakeClock()
    async with faulty(fault, fault, fault, result(TASK)) as server, client_of(server, fake) as client:
        assert (await client.get_task("t")).id == "t"
    assert fake.pauses == [0.1, 0.2, 0.4]


@pytest.mark.requirement("VAPORA-08")
@pytest.mark.parametrize("status", [400, 401, 403, 404, 409])
async def test_4xx_are_final(status: int) -> None:
    fake = FakeClock()
    async with faulty(error(-32000, "no", status=status)) as server:
        raised = await failure(server, fake)
    assert (raised.retryable, raised.attempts, fake.pauses) == (False, 1, [])


@pytest.mark.requirement("VAPORA-08")
@pytest.mark.parametrize(("chance", "share"), [(0.0, 0.8), (1.0, 1.2)])
async def test_the_pauses_vary_by_a_fifth(chance: float, share: float) -> None:
    fake = FakeClock(chance=chance)
    async with faulty(drop) as server:
        await failure(server, fake)
    assert fake.pauses == [pytest.approx(pause * share) for pause in (0.1, 0.2, 0.4)]
