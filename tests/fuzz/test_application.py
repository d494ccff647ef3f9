"""Any calls to the ASGI application in this process: JSON-RPC, REST, and the paths of this server's own."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.conftest import Person
from tests.fuzz.asking import ask, troubles
from tests.fuzz.calls import FOLLOWS, Call, adr_calls, page_calls, path_calls, rpc_calls
from tests.fuzz.exploring import STREAM_SECONDS, explore
from tests.fuzz.judging import fault
from tests.operations.asking import sent

pytestmark = [
    *(pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.slow),
    # Other threads of the service use it while an example is made.
    pytest.mark.filterwarnings("ignore:Do not use the `random` module"),
]

Check = Callable[[Call], None]


@pytest.fixture
def check(service: None, owner: Person, settings: Any) -> Iterator[Check]:
    """Give the check of one call. All calls are of one event loop, as in a server."""
    from config.asgi import application

    settings.A2A_DEFAULT_AGENT, settings.A2A_STREAM_SECONDS = "echo", STREAM_SECONDS
    task_id = sent(owner, "hello", "echo").id
    with asyncio.Runner() as runner, troubles() as lines:

        def check(call: Call) -> None:
            lines.clear()
            call = call.of_task(task_id)
            answer = runner.run(ask(application, call, owner.key))
            why = fault(call, answer) or "".join(lines)
            assert not why, f"{why}\n{call.curl('$BASE')}"

        yield check


@pytest.mark.requirement("ACP-12", "ZONE-02")
def test_every_call_of_a_method_gets_a_valid_answer(check: Check) -> None:
    explore(check, rpc_calls(), 300)


def test_every_call_of_a_path_gets_a_valid_answer(check: Check) -> None:
    explore(check, path_calls(), 300)


def test_every_call_of_an_agent_by_its_name_gets_a_valid_answer(check: Check) -> None:
    explore(check, adr_calls(), 200)


def test_every_call_of_a_page_gets_a_valid_answer(check: Check) -> None:
    explore(check, page_calls(), 150)


def test_a_stream_without_an_end_is_an_answer(check: Check) -> None:
    check(FOLLOWS)
