"""Requests of strangers: few begin in a round of the loop, and those of known callers do not wait behind them."""

import asyncio
from collections.abc import Collection
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from tasks_app.asgi import rounds as module
from tasks_app.asgi.application import Http
from tasks_app.asgi.handler import LeanHandler
from tasks_app.asgi.rounds import MOST, Rounds
from tasks_app.process.asgi_extensions import COMPLETE, CONNECTION
from tasks_app.process.connections import Connection
from tasks_app.transports.call import SMALL
from tests.conftest import Person
from tests.transports.calls import call
from tests.transports.websocket.serving import serving, url

STRANGERS = 3 * MOST


def scope(*, is_known: bool, size: int = 0, is_complete: bool = True) -> dict[str, Any]:
    extensions = {CONNECTION: SimpleNamespace(is_known=is_known, size=size)}
    return {"extensions": extensions | ({COMPLETE: {}} if is_complete else {})}


def strangers(rounds: Rounds) -> list["asyncio.Task[None]"]:
    return [asyncio.ensure_future(rounds.enter(scope(is_known=False))) for _ in range(STRANGERS)]


def begun(requests: Collection["asyncio.Task[None]"]) -> int:
    return sum(request.done() for request in requests)


async def test_few_requests_of_strangers_begin_in_a_round() -> None:
    requests = strangers(Rounds())
    await asyncio.sleep(0)
    assert begun(requests) == MOST
    await asyncio.sleep(0)
    assert begun(requests) <= 2 * MOST
    await asyncio.gather(*requests)


async def test_a_known_caller_waits_for_no_stranger_and_is_known_for_one_request() -> None:
    rounds, known = Rounds(), scope(is_known=True)
    requests = strangers(rounds)
    await rounds.enter(known)
    assert begun(requests) == 0
    assert not known["extensions"][CONNECTION].is_known
    await asyncio.gather(*requests)


async def test_strangers_pause_while_known_callers_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """The threads that do the calls of others need the interpreter."""
    rounds, waits = Rounds(), list[float]()
    loop = asyncio.get_running_loop()
    plain = loop.call_later
    monkeypatch.setattr(loop, "call_later", lambda seconds, *more: waits.append(seconds) or plain(seconds, *more))
    await rounds.enter(scope(is_known=True))
    await asyncio.gather(*strangers(rounds))
    assert waits == [module.PAUSE] * 3
    rounds.known_at -= module.SHARED_SECONDS
    await asyncio.sleep(2 * module.PAUSE)
    waits.clear()
    await asyncio.gather(*strangers(rounds))
    assert waits == []


async def test_checks_of_health_and_pages_do_not_wait_behind_calls() -> None:
    rounds = Rounds()
    requests = strangers(rounds)
    await asyncio.sleep(0)
    for kind in ("health", "pages"):
        await rounds.enter(scope(is_known=False), kind)
    assert begun(requests) == MOST
    await asyncio.gather(*requests)


@pytest.mark.parametrize("more", [{"size": SMALL + 1}, {"is_complete": False}])
async def test_a_request_whose_body_counts_in_an_account_does_not_wait(more: dict[str, Any]) -> None:
    rounds = Rounds()
    requests = strangers(rounds)
    await rounds.enter(scope(is_known=False, **more))
    assert begun(requests) == 0
    await asyncio.gather(*requests)


async def test_a_request_that_leaves_the_line_takes_no_part_of_a_round() -> None:
    requests = strangers(Rounds())
    await asyncio.sleep(0)
    for request in requests[MOST:-1]:
        request.cancel()
    await requests[-1]


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
        (good | {"Authorization": "Bearer wrong"}, "POST", get, False),
    ]
    lean = LeanHandler()
    async with serving({"http": Http(lean, lean)}) as server, httpx.AsyncClient(base_url=url(server)) as client:
        for headers, verb, body, is_known in acts:
            await client.request(verb, "/jsonrpc", content=body, headers=headers)
            (connection,) = (one for one in Connection.of_process if isinstance(one, Connection))
            assert connection.is_known is is_known, (verb, body, headers)
