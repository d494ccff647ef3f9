"""The counters and the health of a process, over HTTP."""

import asyncio
import json
import re
from typing import Any
from unittest.mock import AsyncMock

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient
from orjson import dumps

from tasks_app import __version__, clock
from tasks_app.counters import ALL, agent_calls
from tasks_app.event_log import create_many
from tasks_app.exchanges.recent import RecentCalls, Summary
from tasks_app.limits import strangers
from tasks_app.models import OperatorToken, Process
from tasks_app.operators import tokens
from tasks_app.process.health import Load, Report, loads, reports
from tasks_app.process.vitals import pulse
from tasks_app.upkeep.processes import WEB, ProcessRow
from tests.conftest import PATIENCE, Person
from tests.operations.rows import creation
from tests.operators.people import Program, program
from tests.support.lanes import hanging_reads

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("service"),
    pytest.mark.requirement("VAPORA-07", "VAPORA-12"),
]
LINE = re.compile(r'a2a_\w+_total\{\w+="[^"]*"(,\w+="[^"]*")?\} \d+')


Answer = tuple[int, dict[str, str], str]
"""The status, the headers and the body."""


@pytest.fixture
def robot(service: None) -> Program:
    return program()


async def got(path: str, token: str = "", *, accept: str = "", media: str = "", **more: str) -> Answer:
    own = {"authorization": token and f"Bearer {token}", "accept": accept, "content-type": media}
    headers = {name: value for name, value in own.items() if value}
    response = await AsyncClient().get(path, headers=headers, **more)
    return response.status_code, dict(response.headers), response.content.decode()


async def test_operators_get_the_counters_in_the_text_format(robot: Program) -> None:
    status, headers, body = await got("/metrics", robot.token)
    assert (status, headers["Content-Type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    heads = [line for line in body.splitlines() if line.startswith("#")]
    assert [line.split()[2] for line in heads] == [counter.name for counter in ALL for _ in ("HELP", "TYPE")]
    numbers = [line for line in body.splitlines() if not line.startswith("#")]
    assert numbers
    assert [line for line in numbers if not LINE.fullmatch(line)] == []


async def test_a_call_adds_to_the_operations_of_the_database(robot: Program, owner: Person) -> None:
    async def count() -> int:
        body = (await got("/metrics", robot.token))[2]
        return sum(int(n) for n in re.findall(r'a2a_db_operations_total\{operation="ReadTask",.*\} (\d+)', body))

    before = await count()
    body = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": "missing"}}
    headers = {"authorization": f"Bearer {owner.key}"}
    answer = await AsyncClient().post("/a2a", data=body, content_type="application/json", headers=headers)
    assert answer.status_code == 404
    assert await count() == before + 1


async def test_a_worker_has_its_counters_there_also_after_its_death(robot: Program) -> None:
    """The row of a worker has its numbers as of its last sweep. Nothing but the row is left of this one."""
    worker, web = ProcessRow(), ProcessRow()
    worker.begin("worker")
    web.begin(WEB)
    agent_calls.add(("counted-agent", "answered"), 3)
    await sync_to_async(lambda: (worker.write(), web.write()))()
    body = (await got("/metrics", robot.token))[2]
    line = 'a2a_agent_calls_total{agent="counted-agent",outcome="answered"'
    assert f'{line},process="{worker.name}"}} 3\n' in body
    assert f"{line}}} 3\n" in body
    assert web.name not in body


async def test_counters_wait_for_no_reads_of_callers(robot: Program) -> None:
    """Their look-up is in the lane of the checks of the service, all of which would wait with it."""
    with hanging_reads():
        for token, status in ((robot.token, 200), ("tdo_nonsense", 401)):
            assert (await asyncio.wait_for(got("/metrics", token), PATIENCE))[0] == status


async def test_wrong_tokens_are_looked_up_together(robot: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look-up by itself would have the checks of the service wait for it."""
    alone: list[str] = []
    find = tokens.find_token

    def spy(token: str) -> OperatorToken | None:
        alone.append(token)
        return find(token)

    monkeypatch.setattr(tokens, "find_token", spy)
    for token in ("tdo_nonsense", "nonsense", robot.token):
        await got("/metrics", token)
    assert alone == [robot.token]


async def test_callers_and_strangers_get_no_counters(owner: Person) -> None:
    for token in ("", owner.key, "tdo_nonsense"):
        status, headers, body = await got("/metrics", token)
        assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="operators"')
        assert "a2a operators token" in body
    assert (await AsyncClient().post("/metrics")).status_code == 405


async def test_one_who_guesses_tokens_is_told_to_wait(robot: Program, settings: object) -> None:
    settings.A2A_ADDRESS_FAILURES = 3  # type: ignore[attr-defined]  # a fixture of pytest-django
    strangers.failures.clear()
    statuses = [(await got("/metrics", "tdo_nonsense", REMOTE_ADDR="203.0.113.9"))[0] for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert (await got("/metrics", robot.token, REMOTE_ADDR="203.0.113.9"))[0] == 200


@pytest.mark.requirement("SPARC-21")
async def test_json_is_sent_where_it_is_preferred_and_text_to_all_others(robot: Program) -> None:
    for accept in ("application/json", "application/json, text/plain;q=0.5"):
        status, headers, body = await got("/metrics", robot.token, accept=accept)
        assert (status, headers["Content-Type"], headers["Vary"]) == (200, "application/json", "Accept"), accept
        assert json.loads(body).keys() == {"requests", "tasks", "performance"}
    for accept in ("*/*", "text/plain", "text/plain, application/json", "application/openmetrics-text, */*;q=0.1"):
        assert (await got("/metrics", robot.token, accept=accept))[1]["Content-Type"].startswith("text/plain")
    assert (await got("/metrics", robot.token, media="application/json"))[1]["Content-Type"] == "application/json"
    text = await got("/metrics", robot.token, media="application/json", accept="text/plain")
    assert text[1]["Content-Type"].startswith("text/plain")
    assert (await got("/metrics", accept="application/json"))[0] == 401


@pytest.mark.requirement("SPARC-21")
async def test_json_counts_calls_errors_and_tasks(robot: Program, owner: Person) -> None:
    async def numbers() -> dict[str, Any]:
        found: dict[str, Any] = json.loads((await got("/metrics", robot.token, accept="application/json"))[2])
        return found

    async def call(method: str, params: dict[str, Any]) -> dict[str, Any]:
        wire = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"authorization": f"Bearer {owner.key}"}
        answer = await AsyncClient().post("/sparc", data=wire, content_type="application/json", headers=headers)
        found: dict[str, Any] = json.loads(answer.content)
        return found

    before = await numbers()
    for number, agent in enumerate(("echo", "raises", "asks")):
        message = {"role": "user", "parts": [{"kind": "text", "text": "hi"}], "messageId": f"m-{number}"}
        assert "result" in await call("message/send", {"message": message, "metadata": {"agent": agent}})
    assert "error" in await call("tasks/get", {"taskId": "task-999"})
    after = await numbers()
    grown = {
        part: {name: after[part][name] - before[part][name] for name in before[part]} for part in ("requests", "tasks")
    }
    assert grown["tasks"] == {"created": 3, "completed": 1, "failed": 1, "active": 0}
    assert (grown["requests"]["total"], grown["requests"]["errors"]) == (4, 1)
    performance = after["performance"]
    assert performance["averageResponseTime"] > 0
    assert performance["p95ResponseTime"] > 0
    assert 0 < performance["throughput"] < after["requests"]["perSecond"]


@pytest.mark.requirement("SPARC-21")
async def test_tasks_that_workers_end_are_counted_too(robot: Program) -> None:
    async def completed() -> int:
        found = json.loads((await got("/metrics", robot.token, accept="application/json"))[2])
        return int(found["tasks"]["completed"])

    before = await completed()
    snapshot = {"a2a_tasks_total": [["completed", 7], ["created", 1]]}
    await Process.objects.acreate(
        name="far",
        role="worker",
        version="1",
        started_at=clock.now(),
        seen_at=clock.now(),
        counters=dumps(snapshot).decode(),
    )
    assert await completed() == before + 7


async def test_a_running_task_is_active(robot: Program, owner: Person) -> None:
    await sync_to_async(create_many)([creation(owner, "k", agent="of-another-release")])
    assert json.loads((await got("/metrics", robot.token, accept="application/json"))[2])["tasks"]["active"] == 1
    loads.look = None
    assert json.loads((await got("/health"))[2])["metrics"]["activeTasks"] == 1


@pytest.mark.requirement("SPARC-20")
async def test_health_has_the_form_of_sparc(robot: Program) -> None:
    status, _, body = await got("/health")
    answer = json.loads(body)
    assert (status, answer["status"], answer["reasons"]) == (200, "healthy", [])
    assert answer["version"] == __version__
    assert type(answer["uptime"]) is int
    metrics = answer["metrics"]
    assert metrics.keys() == {"activeConnections", "activeTasks", "memoryUsage", "cpuUsage"}
    assert metrics["activeTasks"] == 0
    assert 20 < metrics["memoryUsage"] < 4096


async def test_readiness_counts_no_tasks(robot: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    monkeypatch.setattr("tasks_app.process.health.count_unfinished", lambda: counts.append(1) or 7)
    reports.look = loads.look = None
    assert (await got("/readyz"))[0] == 200
    assert counts == []
    assert json.loads((await got("/health"))[2])["metrics"]["activeTasks"] == 7
    assert counts == [1]


@pytest.mark.requirement("SPARC-20")
async def test_health_is_that_of_readiness(robot: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    for problems, lags, status, words in (
        (["lost"], [], 503, ("unhealthy", "unavailable")),
        ([], ["late"], 200, ("degraded", "degraded")),
    ):
        monkeypatch.setattr(reports, "latest", AsyncMock(return_value=Report(problems, lags)))
        monkeypatch.setattr(loads, "latest", AsyncMock(return_value=Load(pulse.look(), None)))
        for path, word in zip(("/health", "/readyz"), words, strict=True):
            answer = await got(path)
            assert (answer[0], json.loads(answer[2])["status"]) == (status, word)
            assert json.loads(answer[2])["reasons"] == problems + lags
    assert json.loads((await got("/health"))[2])["metrics"]["activeTasks"] is None


def test_the_last_minute_alone_is_summed_up() -> None:
    calls = RecentCalls(since=0.0)
    assert calls.summary(30.0) == Summary(per_second=0.0, answered_per_second=0.0, average_ms=0.0, p95_ms=0.0)
    calls.add(1.0, 900_000_000, failed=True)
    for number in range(100):
        calls.add(100.0 + number / 4, 1000 * (number + 1), failed=number % 10 == 0)
    calls.add(126.0, None, failed=False)
    summary = calls.summary(130.0)
    assert (summary.per_second, summary.answered_per_second) == (round(101 / 60, 2), round(91 / 60, 2))
    assert summary.average_ms == 50.5
    assert 95 <= summary.p95_ms <= 95 * 9 / 8
    assert calls.summary(126.0 + 60).per_second == 0


@pytest.mark.parametrize("duration_us", [0, 1, 2, 7, 8, 9, 1000, 123_456, 10**9])
def test_a_time_is_reported_at_most_an_eighth_too_long(duration_us: int) -> None:
    calls = RecentCalls(since=0.0)
    calls.add(1.0, duration_us, failed=False)
    p95 = calls.summary(1.0).p95_ms
    assert duration_us / 1000 <= p95 + 0.05
    assert p95 <= max(duration_us, 1) * 9 / 8 / 1000 + 0.05
