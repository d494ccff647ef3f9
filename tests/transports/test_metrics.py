"""The counters and the health of a process, over HTTP."""

import re

import pytest
from asgiref.sync import sync_to_async
from django.test import AsyncClient

from tasks_app.callers import strangers
from tasks_app.counters import ALL, agent_calls
from tasks_app.upkeep.processes import WEB, ProcessRow
from tests.conftest import Person
from tests.operators.people import Program, program

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("service"),
    pytest.mark.requirement("VAPORA-07", "VAPORA-12"),
]
LINE = re.compile(r'a2a_\w+_total\{\w+="[^"]*"(,\w+="[^"]*")?\} \d+')


@pytest.fixture
def robot(service: None) -> Program:
    return program()


async def got(path: str, token: str = "", **more: str) -> tuple[int, dict[str, str], str]:
    headers = {"authorization": f"Bearer {token}"} if token else {}
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


async def test_health_answers_as_readiness_does(robot: Program) -> None:
    status, _, body = await got("/health")
    assert (status, body) == (200, '{"status": "ok", "reasons": []}')
