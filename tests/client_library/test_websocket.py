"""Our client over WebSocket, against a server of an independent implementation that behaves as its script says."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

import orjson
import pytest
from websockets import Request, Response, ServerConnection, serve

from a2a.client import ApiKey, Bearer, Client, Timeouts, errors
from a2a.client.cards import SOCKET
from a2a.client.credentials import Credentials
from a2a.client.transports import websocket
from a2a.requests import GetTask
from a2a.types import Interface, Task
from tests.client_library.faulty import Asked, FakeClock, Json, chunk, faulty, status, task

BEGIN, DONE = {"task": task("TASK_STATE_WORKING")}, status("TASK_STATE_COMPLETED")


@dataclass
class Socket:
    """A running server."""

    url: str = ""
    asked: list[Json] = field(default_factory=list)
    opened: int = 0
    refusals: list[int] = field(default_factory=list)
    """Statuses with which handshakes are refused, the first first."""
    drops: int = 0
    """The number of handshakes that are not answered: their connections are closed."""
    retry_after: str = ""
    location: str = ""
    """The address to which refusals lead."""
    headers: list[dict[str, str]] = field(default_factory=list)


Act = Callable[[ServerConnection, Json], Awaitable[None]]


@asynccontextmanager
async def socket(act: Act) -> AsyncIterator[Socket]:
    """Run a server that performs the act for each frame."""
    server = Socket()

    def refuse(connection: ServerConnection, request: Request) -> Response | None:
        server.headers.append({name.lower(): value for name, value in request.headers.raw_items()})
        if server.drops:
            server.drops -= 1
            connection.transport.abort()
        if server.refusals:
            response = connection.respond(HTTPStatus(server.refusals.pop(0)), "no")
            response.headers["Location"] = server.location
            response.headers["Retry-After"] = server.retry_after
            return response
        return None

    async def handle(connection: ServerConnection) -> None:
        server.opened += 1
        async for frame in connection:
            wire = orjson.loads(frame)
            server.asked.append(wire)
            await act(connection, wire)

    async with serve(handle, "127.0.0.1", 0, process_request=refuse) as listener:
        server.url = f"ws://127.0.0.1:{next(iter(listener.sockets)).getsockname()[1]}/ws"
        yield server


def client_of(server: Socket, fake: FakeClock, **options: Any) -> Client:
    interface = Interface(url=server.url, binding=SOCKET, version="1.0")
    return Client(server.url, interface=interface, clock=fake.clock, **{"token": "secret"} | options)


async def tell(connection: ServerConnection, wire: Json, **members: Any) -> None:
    await connection.send(orjson.dumps({"jsonrpc": "2.0", "id": wire["id"], **members}).decode())


async def end(connection: ServerConnection, wire: Json) -> None:
    frame = {"jsonrpc": "2.0", "method": "stream/end", "params": {"id": wire["id"], "reason": "done"}}
    await connection.send(orjson.dumps(frame).decode())


@pytest.mark.requirement("ACP-16")
async def test_many_calls_share_a_connection_and_are_matched_by_id() -> None:
    waiting: list[Json] = []

    async def act(connection: ServerConnection, wire: Json) -> None:
        waiting.append(wire)
        if len(waiting) == 5:
            for one in reversed(waiting):
                await tell(connection, one, result=task() | {"id": one["params"]["id"]})

    async with socket(act) as server, client_of(server, FakeClock()) as client:
        found = await asyncio.gather(*(client.get_task(f"t{number}") for number in range(5)))
    assert [one.id for one in found] == [f"t{number}" for number in range(5)]
    assert server.opened == 1
    assert server.headers[0]["authorization"] == "Bearer secret"
    assert server.asked[0]["a2a-service-parameters"] == {"A2A-Version": "1.0"}


async def test_a_stream_whose_frames_are_of_another_call_is_no_stream() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, {"id": wire["id"] + 1}, result=BEGIN, sequence=1)

    async with socket(act) as server, client_of(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidResponse, match="another call"):
            await asyncio.wait_for(anext(aiter(client.stream("Hi"))), 30)


async def test_a_stream_that_is_lost_is_taken_up_again_after_its_last_event() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        if wire["method"] == "SendStreamingMessage":
            await tell(connection, wire, result=BEGIN, sequence=1)
            await tell(connection, wire, result=chunk("Hel"), sequence=2)
            connection.transport.abort()
            return
        await tell(connection, wire, result={"task": task("TASK_STATE_WORKING", ["Hel"])}, sequence=2)
        await tell(connection, wire, result=chunk("lo"), sequence=3)
        await tell(connection, wire, result=DONE, sequence=4)
        await end(connection, wire)

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        updates = [update async for update in client.stream("Hi")]
    assert [update.id for update in updates] == ["1", "2", "3", "4"]
    assert "".join(update.text for update in updates) == "Hello"
    assert server.asked[1]["a2a-service-parameters"] == {"A2A-Version": "1.0", "afterSequence": 2}
    assert fake.pauses == [0.1]


async def test_a_stream_that_ends_before_its_task_is_taken_up_again() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        first = wire["method"] == "SendStreamingMessage"
        await tell(connection, wire, result=BEGIN if first else DONE, sequence=1 if first else 2)
        await end(connection, wire)

    async with socket(act) as server, client_of(server, FakeClock()) as client:
        assert [update.id async for update in client.stream("Hi")] == ["1", "2"]


async def test_errors_come_with_their_reasons() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, error={"code": -32001, "message": "Task not found"})

    async with socket(act) as server, client_of(server, FakeClock()) as client:
        with pytest.raises(errors.TaskNotFound):
            await client.get_task("t")
        with pytest.raises(errors.TaskNotFound):
            await anext(aiter(client.subscribe("t")))


async def test_a_refused_handshake_is_repeated_or_final_by_its_status() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, result=task())

    fake = FakeClock()
    async with socket(act) as server:
        server.refusals[:] = [503, 429]
        async with client_of(server, fake) as client:
            assert (await client.get_task("t")).id == "t"
        assert fake.pauses == [0.1, 0.2]
        server.refusals[:] = [401]
        async with client_of(server, fake) as client:
            with pytest.raises(errors.Unauthenticated):
                await client.get_task("t")


@pytest.mark.parametrize("credentials", [ApiKey("secret"), Bearer("secret")])
async def test_a_redirect_takes_credentials_to_no_other_server(credentials: Credentials) -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, result=task())

    async with socket(act) as server, socket(act) as other:
        server.refusals, server.location = [302], other.url
        async with client_of(server, FakeClock(), token=None, credentials=credentials) as client:
            with pytest.raises(errors.UnexpectedStatus, match="302"):
                await client.get_task("t")
    assert "secret" in str(server.headers)
    assert other.headers == []


async def test_a_lost_connection_fails_its_calls_and_the_next_opens_another() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        if len(server.asked) == 1:
            connection.transport.abort()
        else:
            await tell(connection, wire, result=task())

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        assert (await client.get_task("t")).id == "t"
    assert (server.opened, fake.pauses) == (2, [0.1])


async def test_a_server_that_says_nothing_is_told() -> None:
    async def silent(connection: ServerConnection, wire: Json) -> None:
        """Say nothing."""

    fake, limits = FakeClock(), Timeouts(request=60, methods={GetTask: 0.05})
    async with socket(silent) as server, client_of(server, fake, timeouts=limits) as client:
        with pytest.raises(errors.Timeout) as caught:
            await client.get_task("t")
    assert (caught.value.attempts, fake.pauses) == (4, [0.1, 0.2, 0.4])


def frame(**members: Any) -> str:
    return orjson.dumps({"jsonrpc": "2.0", **members}).decode()


BROKEN = [
    pytest.param("[", "a frame is not a JSON object", id="no JSON"),
    pytest.param("[" + "[]," * 500_000 + "[]]", "more than 500000 JSON values", id="very many values"),
    pytest.param(frame(id=[], result={}), "the id of a frame", id="a list as id"),
    pytest.param(frame(id={}, result={}), "the id of a frame", id="an object as id"),
    pytest.param(frame(id=True, result={}), "the id of a frame", id="a bool as id"),
    pytest.param(frame(id=1, result={}, sequence="x"), "the sequence of a frame", id="a text as sequence"),
    pytest.param(frame(id=1, result={}, sequence=True), "the sequence of a frame", id="a bool as sequence"),
    pytest.param(frame(id=1, result={}, sequence=-1), "the sequence of a frame", id="a negative sequence"),
    pytest.param(frame(method="stream/end", params=[1]), "the params of stream/end", id="a list as params"),
    pytest.param(frame(method="stream/end"), "the params of stream/end", id="no params"),
]


@pytest.mark.parametrize(("text", "why"), BROKEN)
async def test_a_frame_that_cannot_be_read_is_told_and_ends_its_connection(text: str, why: str) -> None:
    connections: list[ServerConnection] = []

    async def act(connection: ServerConnection, wire: Json) -> None:
        connections.append(connection)
        await connection.send(text)

    async with socket(act) as server, client_of(server, FakeClock()) as client:
        for _ in range(2):
            with pytest.raises(errors.InvalidResponse, match=why):
                await client.get_task("t")
        with pytest.raises(errors.InvalidResponse, match=why):
            await anext(aiter(client.stream("Hi")))
        for connection in connections:
            await asyncio.wait_for(connection.wait_closed(), 10)
    assert len(set(connections)) == 3


NO_CALL = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "Request payload validation error"}}


async def test_an_error_without_an_id_is_that_of_the_only_call() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await connection.send(orjson.dumps(NO_CALL).decode())

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        with pytest.raises(errors.InvalidRequest, match="validation error"):
            await client.get_task("t")
        with pytest.raises(errors.InvalidRequest, match="validation error"):
            await anext(aiter(client.stream("Hi")))
    assert (len(server.asked), fake.pauses) == (2, [])


async def test_an_error_without_an_id_lets_several_calls_be_made_again() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        if len(server.asked) < 3:
            return
        if len(server.asked) == 3:
            await connection.send(orjson.dumps(NO_CALL).decode())
        else:
            await tell(connection, wire, result=task() | {"id": wire["params"]["id"]})

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        found = await asyncio.gather(*(client.get_task(f"t{number}") for number in range(3)))
    assert [one.id for one in found] == ["t0", "t1", "t2"]
    assert (len(server.asked), server.opened, fake.pauses) == (6, 2, [0.1] * 3)


async def test_a_server_that_drops_the_handshake_is_called_again() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, result=task())

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        server.drops = 2
        assert (await client.get_task("t")).id == "t"
        server.drops = 9
        with pytest.raises(errors.ConnectionRefused, match="4 attempts") as caught:
            [update async for update in client.stream("Hi")]
    assert (fake.pauses, caught.value.processed) == ([0.1, 0.2, 0.1, 0.2, 0.4], False)


async def test_a_server_that_does_not_take_the_end_of_a_connection_is_left_in_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(websocket, "LEAVING", 0.05)
    connections = []

    async def act(connection: ServerConnection, wire: Json) -> None:
        connections.append(connection)
        await tell(
            connection,
            wire,
            **({"result": BEGIN, "sequence": 1} if "message" in wire["params"] else {"result": task()}),
        )
        # From now on the server reads nothing, not even the end of the connection.
        connection.transport.pause_reading()

    async with socket(act) as server:
        begin = asyncio.get_running_loop().time()
        async with client_of(server, FakeClock()) as client:
            async with client.stream("Hi") as stream:
                assert (await anext(aiter(stream))).id == "1"
            await client.get_task("t")
        assert asyncio.get_running_loop().time() - begin < 8
        for connection in connections:
            connection.transport.abort()


# ------------------------------------------------------------------ retries


async def half(connection: ServerConnection, wire: Json) -> None:
    """Break off in the middle of a frame."""
    connection.transport.write(b"\x81\x7e\x01\x00" + b'{"jsonrpc": "2.0"')
    await asyncio.sleep(0)
    connection.transport.close()


async def drop(connection: ServerConnection, wire: Json) -> None:
    connection.transport.abort()


def refusing(code: int, reason: str) -> Act:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, error={"code": code, "message": "no", "data": [{"reason": reason}]})

    return act


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(drop, id="a dropped connection"),
        pytest.param(half, id="half a frame"),
        pytest.param(refusing(-32603, "INTERNAL_ERROR"), id="an internal error"),
        pytest.param(refusing(-38013, "UNAVAILABLE"), id="unavailable"),
        pytest.param(refusing(-38008, "RATE_LIMITED"), id="a limit"),
    ],
)
async def test_a_fault_that_may_pass_is_tried_again_with_growing_pauses(fault: Act) -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        if len(server.asked) < 4:
            await fault(connection, wire)
        else:
            await tell(connection, wire, result={"task": task()})

    fake = FakeClock()
    async with socket(act) as server, client_of(server, fake) as client:
        assert isinstance(await client.send("Hi"), Task)
    assert fake.pauses == [0.1, 0.2, 0.4]
    assert len({wire["params"]["message"]["messageId"] for wire in server.asked}) == 1
    assert len(server.asked) == 4


async def test_a_refused_handshake_says_how_long_to_wait() -> None:
    async def act(connection: ServerConnection, wire: Json) -> None:
        await tell(connection, wire, result=task())

    fake = FakeClock()
    async with socket(act) as server:
        server.refusals[:], server.retry_after = [503, 429, 500], "7"
        async with client_of(server, fake) as client:
            await client.get_task("t")
        assert fake.pauses == [7.0, 7.0, 7.0]
        for status in (400, 403, 404, 409):
            server.refusals[:] = [status]
            async with client_of(server, fake) as client:
                with pytest.raises(errors.ClientError) as caught:
                    await client.get_task("t")
            assert (caught.value.status, caught.value.retryable) == (status, False)
    assert fake.pauses == [7.0, 7.0, 7.0]


async def test_a_server_that_does_not_answer_a_handshake_is_given_up_in_time() -> None:
    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    fake, limits = FakeClock(), Timeouts(connect=0.05)
    async with faulty(act) as server:
        interface = Interface(url=server.url.replace("http", "ws"), binding=SOCKET, version="1.0")
        async with Client("", interface=interface, clock=fake.clock, timeouts=limits) as client:
            with pytest.raises(errors.ConnectTimeout) as caught:
                await client.get_task("t")
    assert (fake.pauses, caught.value.processed) == ([0.1, 0.2, 0.4], False)
