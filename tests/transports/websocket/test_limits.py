"""Limits of a connection: bytes and time of a message, readers, idleness, keys, and the order to stop."""

import asyncio
import json
from typing import Any

import pytest
from websockets import ClientConnection
from websockets.frames import Frame, Opcode

from tasks_app.callers.access import revoke
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account
from tasks_app.models import ApiKey, Exchange
from tasks_app.process import services
from tasks_app.process.connections import Connection
from tasks_app.process.sockets import MAX_FRAGMENTS, MAX_QUEUED, Socket
from tasks_app.transports import frames, keys, streams, websocket
from tests.conftest import PATIENCE, Person
from tests.support.accounts import holdings
from tests.transports.websocket.door import bearer, call, dialled, frames_of, message, next_frame, streaming
from tests.transports.websocket.serving import DOORS, connected, eventually, in_a_thread, port, serving, url

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


async def test_a_message_that_is_too_large_ends_the_socket(owner: Person, settings: Any) -> None:
    settings.A2A_BODY_BYTES = 2_000
    async with connected(owner) as (client, _):
        await client.send("x" * 2_001)
        assert await frames_of(client) == []
    assert client.close_code == 1009


async def test_a_binary_message_ends_the_socket(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await client.send(call(1, "GetTask", {"id": "none"}).encode())
        assert await frames_of(client) == []
    assert (client.close_code, client.close_reason) == (1003, "frames must be text, with JSON in it")


async def begin(client: ClientConnection, opcode: Opcode, data: bytes) -> None:
    """Send one fragment of a message whose end does not come."""
    client.transport.write(Frame(opcode, data, fin=False).serialize(mask=True, extensions=[]))


async def test_a_message_under_way_counts_in_the_account_of_its_owner(owner: Person, settings: Any) -> None:
    async with connected(owner) as (client, _):
        await begin(client, Opcode.TEXT, b"x" * 50_000)
        await eventually(lambda: any(kind == "bodies" and amount == 50_000 for kind, _, amount in holdings(account)))
        await client.close()
        await eventually(lambda: not holdings(account))
    settings.A2A_OWNER_BODY_BYTES = 40_000
    async with connected(owner) as (client, _):
        await begin(client, Opcode.TEXT, b"x" * 50_000)
        assert await frames_of(client) == []
        assert client.close_code == 1013
        await eventually(lambda: not holdings(account))


async def test_a_message_has_a_limited_number_of_fragments(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await begin(client, Opcode.TEXT, b"")
        for _ in range(MAX_FRAGMENTS):
            await begin(client, Opcode.CONT, b"")
        assert await frames_of(client) == []
    assert client.close_code == 1008


async def test_thousands_of_tiny_messages_that_arrive_at_once_end_the_socket(owner: Person) -> None:
    async with connected(owner) as (client, _):
        client.transport.write(b"\x81\x81\0\0\0\0x" * 4 * MAX_QUEUED)
        assert await frames_of(client) == []
    assert client.close_code == 1008


@pytest.mark.parametrize("pieces", [[b"\xff"], [b"\xc3", b"\xa9 \xc3"]])
async def test_a_text_that_is_not_utf_8_ends_the_socket_and_is_no_fault_of_the_server(
    owner: Person, pieces: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    async with connected(owner) as (client, _):
        await client.send(iter(pieces) if len(pieces) > 1 else pieces[0], text=True)
        assert await frames_of(client) == []
    assert (client.close_code, client.close_reason) == (1007, "a text message must be in UTF-8")
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


async def test_a_text_whose_characters_are_cut_by_fragments_is_taken(owner: Person) -> None:
    async with connected(owner) as (client, _):
        frame = call("é", "GetTask", {"id": "none"}).encode().replace(b"\\u00e9", "é".encode())
        middle = frame.index(b"\xc3") + 1
        await client.send(iter([frame[:middle], frame[middle:]]), text=True)
        assert (await next_frame(client))["id"] == "é"


@pytest.mark.parametrize("data", [b"x", b""])
async def test_a_message_that_does_not_arrive_in_time_ends_the_socket(
    owner: Person, settings: Any, data: bytes
) -> None:
    settings.A2A_BODY_SECONDS = 0.1
    async with connected(owner) as (client, _):
        await begin(client, Opcode.TEXT, data)
        assert await frames_of(client) == []
    assert (client.close_code, client.close_reason) == (1008, "a message must arrive within 0.1 s")


@pytest.mark.parametrize("head", [b"\x81\x85", b"\x81\x85\0\0\0\0", b"\x81\xfe\xff\xff", b"\x89\x81\0\0\0\0"])
async def test_a_frame_of_which_only_the_head_arrives_ends_the_socket(
    owner: Person, settings: Any, head: bytes
) -> None:
    settings.A2A_BODY_SECONDS = 0.1
    async with connected(owner) as (client, _):
        client.transport.write(head)
        assert await frames_of(client) == []
    assert (client.close_code, client.close_reason) == (1008, "a message must arrive within 0.1 s")


async def test_a_socket_between_two_messages_has_no_deadline(owner: Person) -> None:
    async with connected(owner) as (client, server):
        for number in range(3):
            sockets = [one for one in server.server_state.connections if isinstance(one, Socket)]
            assert [one.started_at for one in sockets] == [None]
            await client.send(call(number, "GetTask", {"id": "none"}))
            assert (await next_frame(client))["id"] == number
            await (await client.ping())


async def test_an_idle_socket_is_closed_and_one_with_a_stream_is_not(owner: Person, settings: Any) -> None:
    settings.A2A_SOCKET_IDLE_SECONDS = 1
    async with serving() as server, dialled(url(server), **bearer(owner.key)) as busy:
        await busy.send(streaming("s", "asks-credentials"))
        await next_frame(busy)
        async with dialled(url(server), **bearer(owner.key)) as idle:
            assert await frames_of(idle) == []
            assert (idle.close_code, idle.close_reason) == (1001, "there was no call for 1 s")
        await busy.send(call(1, "GetTask", {"id": "none"}))
        while (await next_frame(busy))["id"] != 1:
            pass


async def test_a_revoked_key_ends_its_idle_socket(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websocket, "KEY_SECONDS", 0.2)
    async with connected(owner) as (client, _):
        await in_a_thread(lambda: revoke(ApiKey.objects.filter(pk=owner.caller.key_id)))
        assert await frames_of(client) == []
    assert (client.close_code, client.close_reason) == (1008, "the key of this socket is not valid any more")


async def test_a_socket_whose_key_loses_a_scope_refuses_its_calls_and_ends_its_streams(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "KEY_SECONDS", 0.2)
    monkeypatch.setattr(keys, "TRUSTED_SECONDS", 0.1)
    settings.A2A_PING_SECONDS = 0.1
    async with connected(owner) as (client, _):
        await client.send(streaming("s", "asks-credentials"))
        task_id = (await next_frame(client))["result"]["task"]["id"]
        await in_a_thread(lambda: ApiKey.objects.filter(pk=owner.caller.key_id).update(scopes="tasks:read"))
        while (frame := await next_frame(client)).get("method") != "stream/end":
            assert "result" in frame
        assert frame["params"] == {"id": "s", "reason": "revoked", "resume": False}
        await client.send(call(1, "CancelTask", {"id": task_id}))
        refused = (await next_frame(client))["error"]
        assert refused["code"] == -38010
        assert refused["data"][0]["metadata"] == {"required": "tasks:cancel", "provided": "tasks:read"}
        await client.send(call(2, "GetTask", {"id": task_id}))
        assert (await next_frame(client))["result"]["id"] == task_id


async def test_a_stream_tells_its_end_before_the_server_stops(owner: Person) -> None:
    frames: list[Any] = []
    async with connected(owner) as (client, server):
        await client.send(streaming("s", "asks-credentials"))
        frames.append(await next_frame(client))
        services.drain()
        for connection in [*server.server_state.connections]:
            connection.shutdown()  # as the server does at once, or a little later
        frames += await frames_of(client)
    assert (frames[-1]["method"], frames[-1]["params"]) == (
        "stream/end",
        {"id": "s", "reason": "draining", "resume": True},
    )
    assert client.close_code == 1012


async def test_small_answers_count_until_the_client_takes_them(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await client.send(call("m", "SendMessage", {"message": message("x" * 5_000)}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
        turn = asyncio.Lock()
        async with turn:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(websocket, "text_of", _waiting(turn))
                for number in range(8):
                    await client.send(call(number, "GetTask", {"id": task_id}))
                key = "small_answers", owner.caller.owner_id
                await eventually(lambda: account.amounts[key] > 8 * 10_000)
        for _ in range(8):
            assert (await next_frame(client))["result"]["id"] == task_id
        await eventually(lambda: {kind for kind, _, _ in holdings(account)} == {"sockets"})


async def test_an_unread_large_answer_has_no_small_ones_refused(owner: Person, settings: Any) -> None:
    async with connected(owner) as (client, _):
        await client.send(call("m", "SendMessage", {"message": message("hello")}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
        holding = account.hold_body(owner.caller.owner_id, settings.A2A_OWNER_BODY_BYTES)
        await client.send(call("get", "GetTask", {"id": task_id}))
        assert (await next_frame(client))["result"]["id"] == task_id
        await client.send(call("cancel", "CancelTask", {"id": task_id}))
        assert (await next_frame(client))["error"]["code"] == -32002, "it has ended"
        holding.release()


async def test_small_answers_beyond_their_limit_are_refused(owner: Person, settings: Any) -> None:
    async with connected(owner) as (client, _):
        await client.send(call("m", "SendMessage", {"message": message("hello")}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
        holding = account.hold(owner.caller.owner_id, "small_answers", settings.A2A_OWNER_BODY_BYTES)
        await client.send(call("get", "GetTask", {"id": task_id}))
        assert (await next_frame(client))["error"]["code"] == -38008
        owed = account.hold_owed(owner.caller.owner_id, 1)
        await client.send(call("more", "SendMessage", {"message": message("hello")}))
        assert (await next_frame(client))["error"]["code"] == -38008
        owed.release()
        holding.release()
        await client.send(call("get", "GetTask", {"id": task_id}))
        assert (await next_frame(client))["result"]["id"] == task_id


def _waiting(turn: asyncio.Lock) -> Any:
    """Return a function that makes the text of a frame once it is its turn."""

    async def text_of(*arguments: Any) -> str:
        async with turn:
            return await frames.text_of(*arguments)

    return text_of


async def test_a_client_that_does_not_read_is_cut_off(owner: Person, settings: Any) -> None:
    settings.A2A_WRITE_SECONDS = 0.5
    async with connected(owner) as (client, server):
        text = "x" * 200_000
        await client.send(call("m", "SendMessage", {"message": message(text, id="large")}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
        client.transport.pause_reading()
        for number in range(60):
            await client.send(call(number, "GetTask", {"id": task_id}))
        await eventually(lambda: not server.server_state.connections)
        await eventually(lambda: not holdings(account))
        client.transport.abort()  # it would wait for the end of what it does not read


async def test_each_frame_is_an_exchange(owner: Person) -> None:
    async with connected(owner) as (client, _):
        await client.send("no JSON")
        await next_frame(client)
        await client.send(call(1, "GetTask", {"id": "none"}))
        await next_frame(client)
        await client.send(json.dumps({"jsonrpc": "2.0", "id": 2, "method": "stream/end", "params": {"id": "s"}}))
        await next_frame(client)
    assert await asyncio.to_thread(recorder.drain, PATIENCE)
    rows = await in_a_thread(lambda: list(Exchange.objects.order_by("created_at")))
    assert {(row.door, row.http_status, row.envelope) for row in rows} == {("websocket", None, "jsonrpc")}
    assert [(row.method, row.outcome) for row in rows] == [
        ("", "refused"),
        ("GetTask", "error"),
        ("stream/end", "result"),
    ]


@pytest.mark.parametrize(
    ("frame", "rpc_id", "answer"),
    [
        ("{", None, {"code": -32700}),
        ("[]", None, {"code": -32600}),
        ('{"jsonrpc": "2.0", "id": 2, "method": "stream/end", "params": {"id": "s"}}', 2, {"ended": False}),
        ('{"jsonrpc": "2.0", "id": 2, "method": "stream/end"}', 2, {"code": -32602}),
    ],
    ids=["no JSON", "empty batch", "end", "wrong end"],
)
async def test_frames_that_no_operation_performs_are_limited(
    owner: Person, settings: Any, frame: str, rpc_id: Any, answer: Any
) -> None:
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 1, 3
    async with connected(owner) as (client, _):
        for _ in range(3):
            await client.send(frame)
            reply = await next_frame(client)
            assert answer.items() <= (reply.get("result") or reply["error"]).items()
        await client.send(frame)
        reply = await next_frame(client)
        assert (reply["id"], reply["error"]["code"]) == (rpc_id, -38008)


async def test_a_wish_without_an_id_is_never_answered(owner: Person, settings: Any) -> None:
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 1, 2
    async with connected(owner) as (client, _):
        for params in ({"id": "s"}, {}, {"id": "s"}):
            await client.send(json.dumps({"jsonrpc": "2.0", "method": "stream/end", "params": params}))
        await client.send(call(1, "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == 1


# ----------------------------------------------------------------- the server


async def test_without_a_door_an_upgrade_is_ignored() -> None:
    """Answer the request as one of HTTP (RFC 9110, 7.8)."""

    async def http(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 405, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})

    async with serving({"http": http}) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n"
        writer.write(f"GET /ws HTTP/1.1\r\nHost: x\r\n{upgrade}\r\n".encode())
        assert (await reader.readline()).startswith(b"HTTP/1.1 405")
        writer.close()
        await writer.wait_closed()


async def test_an_upgrade_behind_an_open_answer_ends_the_connection() -> None:
    """Close it, because the answer would be written into the socket."""
    gate = asyncio.Event()

    async def http(scope: Any, receive: Any, send: Any) -> None:
        await gate.wait()

    async with serving({"http": http, **DOORS}) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: a\r\n"
        plain = "GET / HTTP/1.1\r\nHost: x\r\n"
        writer.write(f"{plain}\r\n{plain}{upgrade}\r\n".encode())
        assert await reader.read() == b""
        gate.set()
        writer.close()


async def test_an_upgraded_connection_keeps_no_timer(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    freed: list[Connection] = []
    release = Connection._release
    monkeypatch.setattr(Connection, "_release", lambda self: (freed.append(self), release(self))[1])
    async with connected(owner):
        (connection,) = freed
        assert connection.timer is not None
        assert connection.timer.cancelled()


async def test_pings_of_a_client_that_does_not_read_are_not_answered(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[bool] = []
    answer = Socket.handle_ping

    def handle_ping(self: Socket) -> None:
        self.writable.clear()  # as while the buffer of a client that does not read is full
        answer(self)
        self.writable.set()
        answered.append(False)

    async with connected(owner) as (client, _):
        with monkeypatch.context() as patched:
            patched.setattr(Socket, "handle_ping", handle_ping)
            waiting = await client.ping("unanswered")
            await eventually(lambda: answered == [False])
        await client.send("no JSON")
        await next_frame(client)
        assert not waiting.done()
        await (await client.ping("answered"))
