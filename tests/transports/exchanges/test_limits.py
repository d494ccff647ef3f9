"""Rate limits on the wire: codes, statuses and headers of each language and door."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from django.test import AsyncClient

from tasks_app.asgi.handler import LeanHandler
from tasks_app.limits import purses, rate_limits
from tasks_app.limits.rate_limits import limits
from tasks_app.models import Task
from tests.conftest import Person, person
from tests.support.exchanges import recorded
from tests.transports.exchanges.calls import Post, call, new, old

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.fixture(autouse=True)
def slow(settings: Any) -> None:
    """A burst of 20 units, and hardly any after it."""
    settings.A2A_CALLER_RATE, settings.A2A_CALLER_BURST = 1, 20


@pytest.fixture
def reader() -> Person:
    return person("reader", "home", "tasks:read")


def spend(units: int) -> None:
    """Leave the callers who have called so many units."""
    for purse in limits.purses.values():
        purse.level = float(units)


def ask(owner: Person, wire: Any, path: str = "/jsonrpc") -> Any:
    async def post() -> Any:
        headers = {"Authorization": f"Bearer {owner.key}", "Content-Type": "application/json"}
        transport = httpx.ASGITransport(app=LeanHandler())
        async with httpx.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client:
            return await client.post(path, content=wire if isinstance(wire, bytes) else json.dumps(wire))

    return asyncio.run(post())


def test_answers_tell_what_is_left(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (purses, rate_limits):
        monkeypatch.setattr(place, "monotonic", lambda: 1_000.0)
    answer = ask(owner, new())
    assert answer.headers["RateLimit-Policy"] == '"caller";q=20;w=1200'
    assert answer.headers["RateLimit"] == '"caller";r=10;t=600'
    stream = ask(owner, new(method="SendStreamingMessage"))
    assert stream.headers["Content-Type"] == "text/event-stream"
    assert stream.headers["RateLimit"].startswith('"caller";r=0;t=')


@pytest.mark.parametrize(
    ("wire", "path", "status"),
    [
        (new(), "/jsonrpc", 429),
        (old(), "/jsonrpc", 429),
        (new(method="SendStreamingMessage"), "/jsonrpc", 429),
        (new()["params"], "/message:send", 429),
        (old()["params"], "/v1/message:send", 429),
    ],
)
def test_each_language_refuses_with_its_code(owner: Person, wire: Any, path: str, status: int) -> None:
    ask(owner, call("GetTask", {"id": "none"}))
    spend(3)
    answer = ask(owner, wire, path)
    assert answer.status_code == status
    assert int(answer.headers["Retry-After"]) > 0
    assert answer.headers["RateLimit"].startswith('"caller";r=3;t=')
    text = answer.content.decode()
    assert "Too many calls, try again later" in text
    if path == "/jsonrpc":
        assert json.loads(text)["error"]["code"] == -38008
    assert not Task.objects.exists(), "nothing was done"


def test_the_data_of_the_error_say_when_to_come_again(owner: Person) -> None:
    ask(owner, call("GetTask", {"id": "none"}))
    spend(3)
    error = ask(owner, new()).json()["error"]
    (info,) = [each for each in error["data"] if each.get("reason") == "RATE_LIMITED"]
    assert info["metadata"]["cost"] == "10"
    assert info["metadata"]["most"] == "20"
    assert int(info["metadata"]["retryAfter"]) > 300


def test_each_member_of_a_batch_costs(owner: Person) -> None:
    get = [call("GetTask", {"id": "none"}, rpc_id=place) for place in range(25)]
    answer = ask(owner, get)
    codes = [each["error"]["code"] for each in answer.json()]
    assert (codes.count(-32001), codes.count(-38008)) == (20, 5)
    (info,) = [each for each in answer.json()[-1]["error"]["data"] if each.get("reason") == "RATE_LIMITED"]
    assert int(info["metadata"]["retryAfter"]) > 0, "a batch has no header for one of its members"
    assert answer.headers["RateLimit"].startswith('"caller";r=0;t=')


@pytest.mark.parametrize(
    ("wire", "code"),
    [(call("nope", {}), -32601), (call("GetTask", {"id": 7}), -32602), (call("SendMessage", {}), -32602)],
    ids=["unknown method", "wrong params", "no params"],
)
def test_a_flood_of_calls_that_cannot_be_read_is_limited(owner: Person, wire: Any, code: int) -> None:
    answers = [ask(owner, wire) for _ in range(25)]
    codes = [answer.json()["error"]["code"] for answer in answers]
    assert codes == [code] * 20 + [-38008] * 5, "each costs a unit"
    assert answers[-1].status_code == 429
    assert ask(owner, call("GetTask", {"id": "none"})).status_code == 429


@pytest.mark.parametrize(
    ("body", "path", "number"),
    [
        (b"{", "/jsonrpc", -32700),
        (b"[]", "/jsonrpc", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "GetTask"}', "/jsonrpc", -32600),
        (b"{", "/message:send", 400),
        (b"{", "/v1/message:send", 400),
        (b"{", "/links", 400),
    ],
)
def test_a_flood_of_bodies_that_cannot_be_read_is_limited(owner: Person, body: bytes, path: str, number: int) -> None:
    answers = [ask(owner, body, path) for _ in range(22)]
    limit = -38008 if path == "/jsonrpc" else 429
    codes = [(answer.json().get("error") or answer.json())["code"] for answer in answers]
    assert codes == [number] * 20 + [limit] * 2, "each costs a unit"
    assert (answers[-1].status_code, "Retry-After" in answers[-1].headers) == (429, True)
    exchanges = recorded(22)
    assert {exchange.caller_id for exchange in exchanges} == {owner.caller.owner_id}
    # Calls of one millisecond have no order among the exchanges.
    assert [exchange.http_status for exchange in exchanges].count(429) == 2


def test_a_flood_of_calls_without_the_right_is_limited(reader: Person) -> None:
    codes = [ask(reader, call("CancelTask", {"id": "none"})).json()["error"]["code"] for _ in range(25)]
    assert codes == [-38010] * 20 + [-38008] * 5


def test_a_refused_call_is_recorded_like_any_other(owner: Person, post: Post) -> None:
    post(call("GetTask", {"id": "none"}))
    spend(3)
    post(new("hello"))
    exchange = recorded(2)[1]
    assert (exchange.outcome, exchange.code, exchange.http_status) == ("error", -38008, 429)
    assert exchange.caller_id == owner.caller.owner_id


def test_a_ticket_and_a_link_cost_too(owner: Person) -> None:
    ask(owner, call("GetTask", {"id": "none"}))
    spend(0)
    assert ask(owner, {}, "/ws/ticket").status_code == 429
    assert ask(owner, {"taskId": "none"}, "/links").status_code == 429


@pytest.mark.parametrize("path", ["/agent/authenticatedExtendedCard", "/openrpc.json"])
def test_a_page_that_needs_a_key_costs_too(owner: Person, path: str) -> None:
    async def get() -> Any:
        return await AsyncClient().get(path, headers={"authorization": f"Bearer {owner.key}"})

    assert asyncio.run(get()).status_code == 200
    spend(0)
    answer = asyncio.run(get())
    assert (answer.status_code, "Retry-After" in answer.headers) == (429, True)
    assert recorded(2)[1].outcome == "error"
