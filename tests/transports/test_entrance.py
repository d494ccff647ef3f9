"""Requests of strangers: few begin in a round of the loop, and those of known callers do not wait behind them."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from tasks_app.asgi import entrance as module
from tasks_app.asgi.entrance import LINES, Entrance
from tasks_app.limits.turns import turns
from tasks_app.process.asgi_extensions import CONNECTION, SOCKET
from tasks_app.transports.bodies import Gone

MOST = LINES["calls"]
STRANGERS = 3 * MOST


class Wire(SimpleNamespace):
    """A connection, as far as the entrance knows it."""

    place: Any = None

    def line_up(self, place: Any) -> None:
        self.place = place

    def abandon(self) -> None:
        self.is_left = True


def scope(*, is_known: bool = False, size: int = 0, key: str = "", address: str = "") -> dict[str, Any]:
    transport = Mock()
    transport.is_closing = lambda: transport.abort.called
    wire = Wire(is_known=is_known, size=size, transport=transport)
    headers = [(b"authorization", f"Bearer {key}".encode())] if key else []
    return {"headers": headers, "extensions": {CONNECTION: wire, SOCKET: wire}, "client": (address, 1)}


def strangers(entrance: Entrance, number: int = STRANGERS, **more: Any) -> list["asyncio.Task[None]"]:
    return [asyncio.ensure_future(entrance.enter(scope(**more), "calls")) for _ in range(number)]


def begun(requests: Collection["asyncio.Task[None]"]) -> int:
    return sum(request.done() for request in requests)


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
    await entrance.enter(known, "calls")
    assert begun(requests) == 0
    assert not known["extensions"][CONNECTION].is_known
    await asyncio.gather(*requests)


@pytest.fixture
async def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the seconds for which the lines wait between their rounds, as they come."""
    seen = list[float]()
    loop = asyncio.get_running_loop()
    plain = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda seconds, *more: seen.append(seconds) or plain(seconds, *more))
    return seen


async def test_strangers_pause_while_known_callers_call(monkeypatch: pytest.MonkeyPatch, pauses: list[float]) -> None:
    """The threads that do the calls of others need the interpreter."""
    entrance = Entrance()
    monkeypatch.setattr(turns, "last_at", time.monotonic())
    await asyncio.gather(*strangers(entrance))
    assert pauses == [module.PAUSES["calls"]] * 3
    monkeypatch.setattr(turns, "last_at", float("-inf"))
    await asyncio.sleep(2 * module.PAUSES["calls"])
    pauses.clear()
    await asyncio.gather(*strangers(entrance))
    assert pauses == []


async def test_callers_of_before_pause_less_than_strangers(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    monkeypatch.setattr(module, "is_cached", lambda evidence: evidence.secret == "known")
    entrance = Entrance()
    monkeypatch.setattr(turns, "last_at", time.monotonic())
    requests = strangers(entrance, MOST, key="unknown")
    await asyncio.sleep(0)
    pauses.clear()
    await asyncio.gather(*strangers(entrance, 2 * LINES["callers"], key="known"))
    assert set(pauses) == {module.PAUSES["callers"]}
    assert module.PAUSES["callers"] < module.PAUSES["calls"]
    await asyncio.gather(*requests)


async def test_checks_of_health_and_pages_do_not_wait_behind_calls() -> None:
    entrance = Entrance()
    requests = strangers(entrance)
    await asyncio.sleep(0)
    for kind in ("health", "pages"):
        await entrance.enter(scope(), kind)
    assert begun(requests) == MOST
    await asyncio.gather(*requests)


async def enter(entrance: Entrance, scope: dict[str, Any]) -> None:
    await entrance.enter(scope, "calls")


@pytest.mark.parametrize("enter", [enter, Entrance.enter_socket])
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
    await entrance.enter({}, "calls")
    await entrance.enter_socket({})
    assert not any(line.is_due for line in entrance.lines.values())


async def test_a_check_of_health_on_a_known_connection_waits_as_any_other() -> None:
    """Otherwise a single key would open hundreds of connections to checks without a wait."""
    entrance = Entrance()
    checks = [asyncio.ensure_future(entrance.enter(scope(is_known=True), "health")) for _ in range(STRANGERS)]
    await asyncio.sleep(0)
    assert begun(checks) == LINES["health"]
    await asyncio.gather(*checks)


async def test_a_request_waits_behind_none_of_another_address() -> None:
    entrance = Entrance()
    requests = strangers(entrance, 10 * MOST, address="192.0.2.1")
    await asyncio.sleep(0)
    await asyncio.gather(*strangers(entrance, 2, address="192.0.2.2"))
    assert begun(requests) <= 4 * MOST
    await asyncio.gather(*requests)


async def test_a_request_that_leaves_takes_no_part_of_a_round() -> None:
    requests = strangers(Entrance(), 20 * MOST)
    await asyncio.sleep(0)
    for request in requests[MOST:-1]:
        request.cancel()
    for _ in range(3):
        await asyncio.sleep(0)
    assert requests[-1].done(), "the next round is its own"


async def test_a_connection_beyond_those_that_may_wait_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 200)
    entrance, last = Entrance(), scope(size=100)
    requests = strangers(entrance, MOST + 1, size=120)
    await asyncio.sleep(0)
    assert entrance.lines["calls"].size == 120
    with pytest.raises(Gone):
        await entrance.enter(last, "calls")
    last["extensions"][CONNECTION].transport.abort.assert_called_once_with()
    assert last["extensions"][CONNECTION].is_left
    await asyncio.gather(*requests)
    assert entrance.lines["calls"].size == 0


async def test_a_connection_of_an_address_with_many_makes_room_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    entrance = Entrance()
    many = strangers(entrance, MOST + 5, size=200, address="192.0.2.1")
    other = strangers(entrance, 1, size=200, address="192.0.2.2")
    done, _ = await asyncio.wait(many)
    assert [type(one.exception()) for one in many if one.exception()] == [Gone]
    assert isinstance(many[-1].exception(), Gone), "the newest of them"
    await asyncio.gather(*other)
    assert (len(done), entrance.lines["calls"].size) == (MOST + 5, 0)


async def test_all_lines_have_one_limit_and_the_largest_makes_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1_000)
    entrance = Entrance()
    calls = strangers(entrance, MOST + 4, size=200)
    checks = [asyncio.ensure_future(entrance.enter(scope(size=300), "health")) for _ in range(LINES["health"] + 1)]
    await asyncio.gather(*checks)
    await asyncio.wait(calls)
    assert [call for call in calls if call.exception()] == [calls[-1]]
    assert [line.size for line in entrance.lines.values()] == [0] * len(LINES)
