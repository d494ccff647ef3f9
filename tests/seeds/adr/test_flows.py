"""The flows of ADR-002, by a client of its text, against a running server."""

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Any

import httpx
import pytest

from tests.conftest import NO_TLS, Server, until
from tests.seeds.adr.client import Agent, AgentError

pytestmark = pytest.mark.storage
Flow = Callable[[Agent], Awaitable[Any]]


async def at_once(seconds: float) -> None:
    """Pause for no time."""


def run(server: Server, flow: Flow, *, path: str = "", key: str | None = None) -> Any:
    """Return the outcome of a flow with the agent at a path."""

    async def work() -> Any:
        async with httpx.AsyncClient(verify=NO_TLS) as http:
            token = server.owner if key is None else key
            http.headers.update({"Authorization": f"Bearer {token}"} if token else {})
            return await flow(
                Agent(http=http, url=server.url + path, token=token, pause=lambda seconds: asyncio.sleep(0))
            )

    return asyncio.run(work())


def refused(server: Server, flow: Flow, **more: Any) -> AgentError:
    with pytest.raises(AgentError) as error:
        run(server, flow, **more)
    return error.value


def tasks_of(server: Server, request_id: str) -> int:
    ((count,),) = server.rows(f"select count(*) from tasks_app_idempotencykey where key = '{request_id}'")  # noqa: S608
    return int(count)


def new_id() -> str:
    return f"req-{uuid.uuid4()}"


async def tokens(agent: Agent, *arguments: Any, **more: Any) -> list[str]:
    return [token async for token in agent.stream(*arguments, **more)]


@pytest.mark.requirement("ADR-01", "ADR-18")
def test_an_agent_has_a_card(server: Server) -> None:
    card = run(server, Agent.card, path="/agents/priced", key="")
    assert (card["id"], card["version"], card["capabilities"]) == ("priced", "1.0.0", ["priced"])
    assert (card["limits"]["min_cost_per_invoke"], card["limits"]["max_cost_per_invoke"]) == (0.5, 1.0)
    assert card["auth"]["method"] == "api_key"
    assert {"echo", "priced"} <= set(run(server, Agent.card, key="")["capabilities"])


@pytest.mark.requirement("ADR-05")
def test_the_server_is_healthy(server: Server) -> None:
    assert run(server, Agent.health, key="") == {"status": "ok"}


@pytest.mark.requirement("ADR-02")
@pytest.mark.parametrize(
    ("capabilities", "budget", "outcome", "granted"),
    [
        (["priced"], 1.0, "agreement", ["priced"]),
        (["priced"], 0.5, "degradation", ["priced"]),
        (["priced", "nope"], 1.0, "degradation", ["priced"]),
        (["priced"], 0.499999, "refusal", []),
        (["nope"], 1.0, "refusal", []),
    ],
)
def test_a_negotiation_has_three_outcomes(
    server: Server, capabilities: list[str], budget: float, outcome: str, granted: list[str]
) -> None:
    answer = run(server, lambda agent: agent.negotiate(capabilities, budget))
    assert (answer["outcome"], answer["accepted"]) == (outcome, outcome != "refusal")
    assert answer["capabilities"] == granted
    assert (answer["limitations"] == {}) is (outcome == "agreement")


@pytest.mark.requirement("ADR-03", "ADR-16")
def test_a_call_is_done_and_answered(server: Server) -> None:
    async def flow(agent: Agent) -> tuple[Any, Any, httpx.Headers]:
        first = await agent.invoke("echo", {"message": "hello"}, request_id="first-call")
        data = await agent.invoke("inputs", {"city": "Rome", "days": 2})
        return first, data, agent.seen

    first, second, headers = run(server, flow)
    assert (first["status"], first["text"], second["text"]) == ("completed", "hello", "2 days of rain in Rome")
    assert headers["x-agent-id"] == "inputs"
    assert len(headers["x-request-id"]) == 32


def test_the_address_of_an_agent_takes_any_method(server: Server) -> None:
    result = run(server, lambda agent: agent.invoke("classify_intent", {"message": "a plan"}), path="/agents/echo")
    assert result["text"] == "a plan"


@pytest.mark.requirement("ADR-04")
def test_a_stream_sends_the_tokens_of_the_agent(server: Server) -> None:
    text = run(server, lambda agent: agent.invoke("tells", {"text": "x"}))["text"]
    pieces = run(server, lambda agent: tokens(agent, "tells", {"text": "x"}))
    assert len(pieces) > 3
    assert "".join(pieces) == "\n".join(f"{text}|".splitlines())[:-1]
    assert run(server, lambda agent: tokens(agent, "replies", {"text": "x"})) == ["You said x"]


@pytest.mark.requirement("ADR-08")
@pytest.mark.parametrize("request_id", ["", "with space", "x" * 129, "naïve".encode().decode("latin-1")])
def test_a_call_needs_an_id(server: Server, request_id: str) -> None:
    async def flow(agent: Agent) -> Any:
        headers = {"X-Request-ID": request_id} if request_id else {}
        wire = {"jsonrpc": "2.0", "method": "echo", "params": {}, "id": 7}
        raw = {name: value.encode("latin-1") for name, value in headers.items()}
        for path in ("/invoke", "/invoke/stream"):
            response = await agent.http.post(agent.url + path, json=wire, headers=raw)
            error = response.json()["error"]
            assert (response.status_code, error["code"]) == (400, -32602)
            assert (error["data"]["reason"], response.json()["id"]) == ("VALIDATION_ERROR", 7)

    run(server, flow)


@pytest.mark.requirement("ADR-08")
def test_a_call_under_one_id_is_done_once(server: Server) -> None:
    request_id = new_id()

    async def flow(agent: Agent) -> list[Any]:
        calls = [agent.invoke("form-coroutine", {"text": "x"}, request_id=request_id) for _ in range(8)]
        results = await asyncio.gather(*calls)
        return [*results, await agent.invoke("form-coroutine", {"text": "x"}, request_id=request_id)]

    results = run(server, flow)
    assert len({result["task_id"] for result in results}) == 1
    assert all(result == results[0] for result in results)
    assert tasks_of(server, request_id) == 1
    replay = run(server, lambda agent: tokens(agent, "form-coroutine", {"text": "x"}, request_id=request_id))
    assert replay == ["x"]


@pytest.mark.requirement("ADR-08")
@pytest.mark.parametrize(("method", "params"), [("form-coroutine", {"text": "y"}), ("echo", {"text": "x"})])
def test_another_call_under_its_id_is_a_conflict(server: Server, method: str, params: dict[str, Any]) -> None:
    request_id = new_id()
    run(server, lambda agent: agent.invoke("form-coroutine", {"text": "x"}, request_id=request_id))
    error = refused(server, lambda agent: agent.invoke(method, params, request_id=request_id))
    assert (error.code, error.reason, error.status) == (-38012, "IDEMPOTENCY_CONFLICT", 409)
    assert (str(error), error.data["requestId"]) == (
        "Invalid parameters: this X-Request-ID was used before with another call",
        request_id,
    )
    assert tasks_of(server, request_id) == 1


@pytest.mark.requirement("ADR-09", "ADR-19")
@pytest.mark.parametrize("budget", ["0.499999", "0", "0.0"])
def test_a_budget_below_the_minimum_is_refused(server: Server, budget: str) -> None:
    request_id = new_id()
    calls: list[Flow] = [
        lambda agent: agent.invoke("priced", {"text": "x"}, request_id=request_id, budget_usd=budget),
        lambda agent: tokens(agent, "priced", {"text": "x"}, request_id=request_id, budget_usd=budget),
    ]
    for call in calls:
        error = refused(server, call)
        assert (error.code, error.reason, error.status) == (-32001, "BUDGET_EXCEEDED", 402)
        assert error.data["required"] == "0.50"
    assert tasks_of(server, request_id) == 0


@pytest.mark.requirement("ADR-09")
@pytest.mark.parametrize("budget", ["0.5", "0.500000", "1000000000"])
def test_a_budget_of_the_minimum_is_accepted(server: Server, budget: str) -> None:
    result = run(server, lambda agent: agent.invoke("priced", {"text": "0.1"}, budget_usd=budget))
    assert result["status"] == "completed"


@pytest.mark.parametrize("budget", ["-1", "1e3", "0.0000001", "NaN", "1,5", "", "1000000001"])
def test_a_budget_that_is_no_amount_is_not_valid(server: Server, budget: str) -> None:
    error = refused(server, lambda agent: agent.invoke("priced", {"text": "x"}, budget_usd=budget))
    assert (error.code, error.reason, error.status) == (-32602, "VALIDATION_ERROR", 400)


@pytest.mark.requirement("ADR-10")
@pytest.mark.parametrize(
    ("method", "code", "reason", "status"),
    [
        ("nope", -32601, "VALIDATION_ERROR", 400),
        ("rejects", -32602, "VALIDATION_ERROR", 400),
        ("inputs", -32602, "VALIDATION_ERROR", 400),
        ("raises", -32603, "AGENT_FAILED", 500),
        ("quick-raises", -32603, "AGENT_FAILED", 500),
        ("sleeper", -32002, "TIMEOUT", 408),
    ],
)
def test_a_call_without_a_result_is_an_error(server: Server, method: str, code: int, reason: str, status: int) -> None:
    error = refused(server, lambda agent: agent.invoke(method, {"text": "x"}))
    assert (error.code, error.reason, error.status) == (code, reason, status)


@pytest.mark.requirement("ADR-10")
def test_an_agent_that_does_not_exist_is_unavailable_for_good(server: Server) -> None:
    calls: list[Callable[[Agent], Any]] = [lambda agent: agent.invoke("x", {}), lambda agent: agent.negotiate([], 1)]
    for call in calls:
        error = refused(server, call, path="/agents/nobody")
        assert (error.code, error.reason, error.status) == (-32000, "AGENT_UNAVAILABLE", 404)


def test_a_question_is_a_result(server: Server) -> None:
    result = run(server, lambda agent: agent.invoke("asks", {"text": "x"}))
    assert (result["status"], result["question"]) == ("input_required", "Which one?")
    assert run(server, lambda agent: tokens(agent, "asks", {"text": "x"})) == ["Which one?"]


@pytest.mark.requirement("ADR-04", "ADR-10")
def test_a_stream_that_fails_ends_with_an_error(server: Server) -> None:
    seen: list[str] = []

    async def flow(agent: Agent) -> None:
        async for token in agent.stream("raises", {"text": "x"}):
            seen.append(token)  # noqa: PERF401  # those before the error count

    error = refused(server, flow)
    assert (error.code, error.reason, seen) == (-32603, "AGENT_FAILED", ["so far so good"])
    error = refused(server, lambda agent: tokens(agent, "nope", {}))
    assert (error.code, error.status) == (-32601, 400)


def test_a_stream_is_resumed_behind_its_last_event(server: Server) -> None:
    request_id = new_id()
    whole = run(server, lambda agent: tokens(agent, "tells", {"text": "x"}, request_id=request_id))
    more = {"Last-Event-ID": "4"}
    rest = run(server, lambda agent: tokens(agent, "tells", {"text": "x"}, request_id=request_id, **more))
    assert 0 < len(rest) < len(whole)
    assert whole[-len(rest) :] == rest


def test_a_caller_without_a_key_is_refused(server: Server) -> None:
    calls: list[Flow] = [
        lambda agent: agent.invoke("echo", {}),
        lambda agent: tokens(agent, "echo", {}),
        lambda agent: agent.negotiate(["echo"], 1),
    ]
    for call in calls:
        error = refused(server, call, key="")
        assert (error.code, error.status) == (-38009, 401)
        assert "www-authenticate" in error.headers


@pytest.mark.requirement("ADR-13")
@pytest.mark.parametrize("path", ["/invoke", "/invoke/stream", "/negotiate"])
def test_a_body_has_a_megabyte_at_most(server: Server, path: str) -> None:
    async def flow(agent: Agent) -> list[tuple[int, Any]]:
        answers = []
        for size in (1_000_000, 1_000_001):
            head, tail = b'{"jsonrpc":"2.0","id":7,"method":"bench","params":{"text":"', b'"}}'
            body = head + b"x" * (size - len(head) - len(tail)) + tail
            headers = {"Content-Type": "application/json", "X-Request-ID": new_id()}
            response = await agent.http.post(agent.url + path, content=body, headers=headers)
            answers.append((response.status_code, response.content))
        return answers

    (fits, _), (status, body) = run(server, flow)
    assert (fits, status) == (200, 413)
    assert b'"error":{"code":-32600' in body
    assert b'"reason":"VALIDATION_ERROR"' in body


@pytest.mark.requirement("ADR-16")
@pytest.mark.parametrize(("method", "status"), [("echo", 200), ("raises", 500), ("sleeper", 408), ("priced", 402)])
def test_the_line_of_a_call_names_the_request_and_the_agent(server: Server, method: str, status: int) -> None:
    """The log leaves out lines of refused calls after many others, so the call is repeated until its line is there."""
    ids: list[str] = []

    async def flow(agent: Agent) -> None:
        ids.append(new_id())
        with suppress(AgentError):
            await agent.invoke(method, {"text": "x"}, request_id=ids[-1], budget_usd="0.1")

    def line_of_a_call() -> str:
        run(server, flow)
        return next((line for id in ids for line in lines_with(server, id)), "")

    line = until(line_of_a_call, "a line of a call")
    (request_id,) = (id for id in ids if id in line)
    left_out = r"(?: \(\d+ such lines were left out before this one\))?" if 400 <= status < 500 else ""
    assert re.search(rf" POST /invoke {method} {status} \d+\.\d+ s {method} {request_id}{left_out}\n$", line), line


def test_the_line_of_a_stream_names_the_request_and_the_agent(server: Server) -> None:
    request_id = new_id()
    run(server, lambda agent: tokens(agent, "tells", {"text": "x"}, request_id=request_id))
    line = until(lambda: next(lines_with(server, request_id), ""), "a line of the call")
    assert re.search(rf" POST /invoke/stream tells 200 \d+\.\d+ s tells {request_id}\n$", line), line


def lines_with(server: Server, words: str) -> Iterator[str]:
    return (
        line for line in server.log.read_text("utf-8").splitlines(keepends=True) if words in line and line[-1] == "\n"
    )
