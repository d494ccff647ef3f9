"""Requests of strangers: few begin in a round of the loop, and those of known callers do not wait behind them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import httpx
import pytest

from tasks_app.asgi import entrance as module
from tasks_app.asgi.application import Http, Sockets
from tasks_app.asgi.entrance import LINES, Entrance
from tasks_app.asgi.handler import LeanHandler
from tasks_app.limits.turns import turns
from tasks_app.process.asgi_extensions import COMPLETE, CONNECTION, SOCKET
from tasks_app.process.connections import Connection
from tasks_app.process.displacing import waiting
from tasks_app.transports.bodies import Gone
from tasks_app.transports.call import SMALL
from tests.conftest import Person
from tests.transports.calls import call
from tests.transports.websocket.serving import eventually, port, serving, url

MOST = LINES["calls"]
STRANGERS = 3 * MOST
HANDSHAKE = (
    b"GET /ws HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==\r\n\r\n"
)


class Wire(SimpleNamespace):
    """A connection, as far as the entrance knows it."""

    place: Any = None

    def line_up(self, place: Any) -> None:
        self.place = place


def scope(*, is_known: bool = False, size: int = 0, is_complete: bool = True, key: str = "") -> dict[str, Any]:
    wire = Wire(is_known=is_known, size=size, transport=Mock(is_closing=lambda: False))
    extensions = {CONNECTION: wire, SOCKET: wire}
    headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
    return {"headers": headers, "extensions": extensions | ({COMPLETE: {}} if is_complete else {})}


def strangers(entrance: Entrance, number: int = STRANGERS, **more: Any) -> list["asyncio.Task[None]"]:
    return [asyncio.ensure_future(entrance.enter(scope(**more))) for _ in range(number)]


def begun(requests: Collection["asyncio.Task[None]"]) -> int:
    return sum(request.done() for request in requests)


@pytest.fixture(autouse=True)
def no_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "last_at", float("-inf"))


async def test_few_requests_of_strangers_begin_in_a_round() -> None:
    requests = strangers(Entrance())
    await asyncio.sleep(0)
    assert begun(requests) == MOST
    await asyncio.sleep(0)
    assert begun(requests) <= 2 * MOST
    await asyncio.gather(*requests)


async def test_a_known_caller_waits_for_no_stranger_and_is_known_for_one_call() -> None:
    entrance, known = Entrance(), scope(is_known=True)
    requests = strangers(entrance)
    await entrance.enter(known, "health")
    assert known["extensions"][CONNECTION].is_known
    await entrance.enter(known)
    assert begun(requests) == 0
    assert not known["extensions"][CONNECTION].is_known
    await asyncio.gather(*requests)


async def test_strangers_pause_while_known_callers_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that do the calls of others need the interpreter."""
    entrance, waits = Entrance(), list[float]()
    loop = asyncio.get_running_loop()
    plain = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda seconds, *more: waits.append(seconds) or plain(seconds, *more))
    monkeypatch.setattr(turns, "last_at", time.monotonic())
    await asyncio.gather(*strangers(entrance))
    assert waits == [module.PAUSE] * 3
    monkeypatch.setattr(turns, "last_at", float("-inf"))
    await asyncio.sleep(2 * module.PAUSE)
    waits.clear()
    await asyncio.gather(*strangers(entrance))
    assert waits == []


async def test_checks_of_health_and_pages_do_not_wait_behind_calls() -> None:
    entrance = Entrance()
    requests = strangers(entrance)
    await asyncio.sleep(0)
    for kind in ("health", "pages"):
        await entrance.enter(scope(), kind)
    assert begun(requests) == MOST
    await asyncio.gather(*requests)


@pytest.mark.parametrize("enter", [Entrance.enter, Entrance.enter_socket])
async def test_a_caller_of_before_does_not_wait_behind_strangers(
    monkeypatch: pytest.MonkeyPatch, enter: Callable[..., Awaitable[None]]
) -> None:
    """A proxy may share its connections among callers and strangers."""
    monkeypatch.setattr(module, "is_cached", lambda evidence: evidence.secret == "known")
    entrance = Entrance()
    requests = [asyncio.ensure_future(enter(entrance, scope(key="unknown"))) for _ in range(10 * MOST)]
    await asyncio.sleep(0)
    await enter(entrance, scope(key="known"))
    assert begun(requests) <= 2 * MOST
    await asyncio.gather(*requests)


async def test_few_handshakes_of_strangers_begin_in_a_round_and_none_behind_calls() -> None:
    entrance = Entrance()
    calls = strangers(entrance)
    handshakes = [asyncio.ensure_future(entrance.enter_socket(scope())) for _ in range(STRANGERS)]
    await asyncio.sleep(0)
    assert (begun(calls), begun(handshakes)) == (MOST, LINES["handshakes"])
    await asyncio.gather(*calls, *handshakes)


async def test_a_server_without_our_connections_has_no_entrance() -> None:
    entrance = Entrance()
    requests = [asyncio.ensure_future(enter({})) for enter in (entrance.enter, entrance.enter_socket)]
    await asyncio.sleep(0)
    assert begun(requests) == 2


@pytest.mark.parametrize("more", [{"size": SMALL + 1}, {"is_complete": False}])
async def test_a_request_whose_body_counts_in_an_account_does_not_wait(more: dict[str, Any]) -> None:
    entrance = Entrance()
    requests = strangers(entrance)
    await entrance.enter(scope(**more))
    assert begun(requests) == 0
    await asyncio.gather(*requests)


async def test_a_request_that_leaves_takes_no_part_of_a_round() -> None:
    requests = strangers(Entrance())
    await asyncio.sleep(0)
    for request in requests[MOST:-1]:
        request.cancel()
    await requests[-1]


async def test_a_connection_beyond_those_that_may_wait_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 200)
    entrance, last = Entrance(), scope(size=100)
    requests = strangers(entrance, MOST + 1, size=90, key="x")
    await asyncio.sleep(0)
    assert entrance.lines["calls"].size == 90 + len(b"authorization" + b"Bearer x")
    with pytest.raises(Gone):
        await entrance.enter(last)
    last["extensions"][CONNECTION].transport.abort.assert_called_once_with()
    await asyncio.gather(*requests)
    assert entrance.lines["calls"].size == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_connection_that_is_closed_is_not_logged_as_a_fault(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 0)
    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(b"GET /jsonrpc HTTP/1.1\r\nHost: x\r\n\r\n")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    assert [record.getMessage() for record in caplog.records if record.name.startswith("uvicorn")] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_client_that_leaves_the_line_takes_its_request_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.Entrance, "_begin_round", lambda self, loop: None)
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        for _ in range(MOST + 1):
            writer.write(b"GET /jsonrpc HTTP/1.1\r\nHost: x\r\n\r\n")
        line = await _line_with(1)
        assert len(waiting) == 1, "a new connection may replace it"
        writer.close()
        await eventually(lambda: not line.waiting)
        monkeypatch.undo()
        module.entrance._begin_anew(None)


async def _line_with(number: int, kind: str = "calls") -> module.Line:
    await eventually(lambda: len(module.entrance.lines[kind].waiting) == number)
    return module.entrance.lines[kind]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_client_that_leaves_takes_its_handshake_with_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    doors: list[Any] = []

    async def door(scope: Any, receive: Any, send: Any) -> None:
        doors.append(scope)

    monkeypatch.setattr(module.Entrance, "_passes", lambda self, kind: False)
    async with serving({"websocket": Sockets(door)}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", port(server))
        writer.write(HANDSHAKE)
        line = await _line_with(1, "handshakes")
        assert len(waiting) == 1, "a new connection may replace it"
        writer.close()
        await eventually(lambda: not line.waiting)
    assert doors == []
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_connection_is_known_after_a_call_with_a_valid_credential_alone(owner: Person) -> None:
    good = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
    get = call("GetTask", {"id": "none"})
    acts: list[tuple[dict[str, str], str, bytes, bool]] = [
        (good, "POST", get, True),
        (good, "POST", b"no JSON", False),
        (good, "POST", get, True),
        (good | {"Content-Type": "text/plain"}, "POST", get, False),
        (good, "POST", b"[" + get + b"]", True),
        (good, "PUT", get, False),
        (good, "POST", get, True),
        (good, "POST", b"x" * (SMALL + 1), False),
        (good | {"Authorization": "Bearer wrong"}, "POST", get, False),
    ]
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server, httpx.AsyncClient(base_url=url(server)) as client:
        for headers, verb, body, is_known in acts:
            await client.request(verb, "/jsonrpc", content=body, headers=headers)
            (connection,) = (one for one in Connection.of_process if isinstance(one, Connection))
            assert connection.is_known is is_known, (verb, body, headers)
