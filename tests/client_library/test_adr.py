"""Our client in ADR-002: calls, streams, budgets, retries under one id, and typed errors."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from a2a.client import ADR, Client, Retries
from a2a.client.errors import (
    BudgetExceeded,
    ClientError,
    ConnectionLost,
    IdempotencyConflict,
    Internal,
    InvalidParams,
    MethodNotFound,
    ServerTimeout,
    Unavailable,
    UnknownAgent,
)
from a2a.requests import SendMessage
from a2a.types import Interface, Message, Part, Role, Task
from tests.client_library.faulty import Act, Asked, FakeClock, drop, error, faulty, plain, result
from tests.conftest import NO_TLS, Server

pytestmark = pytest.mark.storage
DONE = {"status": "completed", "text": "done", "task_id": "t", "context_id": "c"}
WRONG = error(-32602, "no", {"reason": "VALIDATION_ERROR"}, 400)
AWAY = error(-32000, "away", {"reason": "AGENT_UNAVAILABLE"}, 503)
RETRIES = Retries(times=2, first=1, jitter=0)
"""Three attempts, as ADR-002 says."""


def run(server: Server, flow: Callable[[Client], Awaitable[Any]]) -> Any:
    async def work() -> Any:
        interface = Interface(url=server.url, binding=ADR, version="002")
        async with (
            httpx.AsyncClient(verify=NO_TLS) as http,
            Client(server.url, interface=interface, token=server.owner, http=http, retries=Retries(times=0)) as client,
        ):
            return await flow(client)

    return asyncio.run(work())


@pytest.mark.requirement("ADR-14")
def test_a_call_returns_its_task(server: Server) -> None:
    task = run(server, lambda client: client.send("hello", agent="echo"))
    assert isinstance(task, Task)
    assert (task.status.state, task.artifacts[0].parts) == ("completed", (Part(text="hello"),))
    data = Message(message_id="weather-call", role=Role.USER, parts=(Part(data={"city": "Rome"}),))
    again = run(server, lambda client: client.send(data, agent="inputs"))
    assert again.artifacts[0].parts[0].text == "1 days of rain in Rome"
    question = run(server, lambda client: client.send("x", agent="asks"))
    assert (question.status.state, question.status.message.text) == ("input_required", "Which one?")
    assert isinstance(run(server, lambda client: client.send("x", agent="replies")), Message)


@pytest.mark.requirement("ADR-14")
def test_a_stream_yields_the_text_and_ends(server: Server) -> None:
    async def flow(client: Client) -> list[str]:
        return [update.text async for update in client.stream("x", agent="form-async-generator")]

    assert (
        "".join(run(server, flow))
        == run(server, lambda c: c.send("x", agent="form-generator")).artifacts[0].parts[0].text
    )


@pytest.mark.parametrize(
    ("agent", "budget", "kind"),
    [
        ("priced", "0.499999", BudgetExceeded),
        ("nope", None, MethodNotFound),
        ("inputs", None, InvalidParams),
        ("raises", None, Internal),
    ],
)
def test_an_error_has_its_class(server: Server, agent: str, budget: str | None, kind: type[ClientError]) -> None:
    with pytest.raises(kind):
        run(server, lambda client: client.send("x", agent=agent, budget=budget))


def test_another_message_under_its_id_is_a_conflict(server: Server) -> None:
    first = Message(message_id="one-id", role=Role.USER, parts=(Part(text="x"),))
    other = Message(message_id="one-id", role=Role.USER, parts=(Part(text="y"),))
    run(server, lambda client: client.send(first, agent="echo"))
    with pytest.raises(IdempotencyConflict):
        run(server, lambda client: client.send(other, agent="echo"))


def asked(script: list[Act], **options: Any) -> tuple[list[dict[str, str]], list[float], Any]:
    """Return the headers of each request, the pauses, and the outcome or its error."""
    fake = FakeClock()

    async def work() -> tuple[list[dict[str, str]], list[float], Any]:
        async with faulty(*script) as server:
            interface = Interface(url=server.url, binding=ADR, version="002")
            async with Client(server.url, interface=interface, retries=RETRIES, clock=fake.clock) as client:
                try:
                    outcome: Any = await client.send("x", agent="echo", **options)
                except ClientError as problem:
                    outcome = problem
            return [request.headers for request in server.asked], fake.pauses, outcome

    return asyncio.run(work())


@pytest.mark.requirement("ADR-07", "ADR-08")
@pytest.mark.parametrize("fault", [plain(503), plain(500), drop, AWAY], ids=["503", "500", "lost", "away"])
def test_a_call_is_repeated_under_its_id(fault: Act) -> None:
    headers, pauses, outcome = asked([fault, fault, result(DONE)], budget="0.25")
    assert outcome.id == "t"
    assert len({each["x-request-id"] for each in headers}) == 1
    assert ([each["x-budget-usd"] for each in headers], pauses) == (["0.25"] * 3, [1.0, 2.0])
    headers, _, outcome = asked([fault])
    assert (len(headers), isinstance(outcome, ClientError)) == (3, True)


@pytest.mark.requirement("ADR-07")
@pytest.mark.parametrize("refusal", [WRONG, plain(404)], ids=["400", "404"])
def test_a_refusal_is_not_repeated(refusal: Act) -> None:
    headers, pauses, outcome = asked([refusal])
    assert (len(headers), pauses) == (1, [])
    assert not isinstance(outcome, Unavailable)


@pytest.mark.requirement("ADR-07")
def test_an_agent_that_does_not_exist_is_not_called_again() -> None:
    absent = error(-32000, "nobody", {"reason": "AGENT_UNAVAILABLE", "retryable": False}, 404)
    headers, pauses, outcome = asked([absent])
    assert (len(headers), pauses, type(outcome)) == (1, [], UnknownAgent)


TIMEOUT = b'{"jsonrpc":"2.0","id":1,"error":{"code":-32002,"message":"late","data":{"reason":"TIMEOUT"}}}'
PIECE = b"id: 3\ndata: so far\n\n"


def stream(*chunks: bytes) -> Act:
    """Answer with a stream of these events, and break it off."""
    headers = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def act(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(headers + b"".join([b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]))
        await writer.drain()

    return act


@pytest.mark.parametrize(
    ("act", "kind"),
    [(stream(PIECE, b"event: error\ndata: " + TIMEOUT + b"\n\n"), ServerTimeout), (stream(PIECE), ConnectionLost)],
    ids=["timeout", "lost"],
)
def test_a_stream_that_ends_early_raises_the_reason(act: Act, kind: type[ClientError]) -> None:
    """Follow a stream that names no task, so that no subscription leads back to it."""

    async def work() -> int:
        async with faulty(act) as server:
            interface = Interface(url=server.url, binding=ADR, version="002")
            async with Client(server.url, interface=interface, retries=RETRIES, clock=FakeClock().clock) as client:
                with pytest.raises(kind):
                    _ = [update async for update in client.stream("x", agent="echo")]
            return len(server.asked)

    assert asyncio.run(work()) == 1


def test_a_budget_goes_with_every_language() -> None:
    async def work() -> list[dict[str, str]]:
        async with faulty(result({"kind": "task", "id": "t"})) as server:
            for version in ("1.0", "0.3"):
                interface = Interface(url=server.url, binding="JSONRPC", version=version)
                async with Client(server.url, interface=interface, retries=RETRIES) as client:
                    with pytest.raises(ClientError):
                        await client.send("x", budget=0.5)
            return [request.headers for request in server.asked]

    assert [headers["x-budget-usd"] for headers in asyncio.run(work())] == ["0.50", "0.50"]
    assert SendMessage.__struct_fields__.count("budget") == 1
