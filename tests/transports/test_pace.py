"""Early refusals: while known callers call, few are written at a time, and otherwise each at once."""

import asyncio
import time
from typing import Any

import pytest

from tasks_app.limits.turns import turns
from tasks_app.process.answering import Whole
from tasks_app.transports import floods, pace
from tasks_app.transports.doubts import Doubts
from tasks_app.transports.pace import MOST, Pace
from tasks_app.transports.refusal_memory import Answer
from tests.conftest import PATIENCE
from tests.transports.websocket.serving import eventually

REFUSAL: Whole = (401, [], b"")


@pytest.fixture
def callers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a known caller have called just now."""
    monkeypatch.setattr(turns, "last_at", time.monotonic())


@pytest.fixture
def no_second_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what waits wait for ever."""
    monkeypatch.setattr(pace, "PAUSE", 60)


async def answered(*answers: Whole | Answer) -> list[Any]:
    async with asyncio.timeout(PATIENCE):
        return [answer if isinstance(answer, tuple) else await answer for answer in answers]


def at_once(answers: list[Whole | Answer]) -> int:
    """Return the number of refusals that were written at once."""
    return sum(isinstance(answer, tuple) for answer in answers)


async def test_each_refusal_is_written_at_once_while_no_caller_calls() -> None:
    refusals = Pace()
    assert at_once([refusals.of(REFUSAL, {}) for _ in range(10 * MOST)]) == 10 * MOST


@pytest.mark.usefixtures("callers", "no_second_round")
async def test_few_refusals_are_written_in_a_round_while_callers_call() -> None:
    refusals = Pace()
    answers = [refusals.of(REFUSAL, {}) for _ in range(3 * MOST)]
    await asyncio.sleep(0.05)
    assert at_once(answers) == MOST
    assert not any(answer.done() for answer in answers if isinstance(answer, asyncio.Future))


@pytest.mark.usefixtures("callers")
async def test_refusals_that_wait_are_written_in_the_next_rounds_in_their_order() -> None:
    refusals, order = Pace(), list[int]()
    answers = [refusals.of((401, [], str(number).encode()), {}) for number in range(3 * MOST)]
    for number, answer in enumerate(answers):
        if isinstance(answer, asyncio.Future):
            answer.add_done_callback(lambda _, number=number: order.append(number))
    assert [int(body) for _, _, body in await answered(*answers)] == list(range(3 * MOST))
    await eventually(lambda: refusals.in_round == 0)
    assert order == list(range(MOST, 3 * MOST))
    assert at_once([refusals.of(REFUSAL, {})]) == 1, "the next one waits for none of them"


@pytest.mark.usefixtures("callers")
async def test_refusals_that_wait_are_written_together_once_no_caller_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    refusals, rounds = Pace(), list[object]()
    answers = [refusals.of(REFUSAL, {}) for _ in range(50 * MOST)]
    monkeypatch.setattr(turns, "last_at", float("-inf"))
    plain = Pace._begin_round
    monkeypatch.setattr(Pace, "_begin_round", lambda *given: rounds.append(given) or plain(*given))
    assert await answered(*answers) == [REFUSAL] * (50 * MOST)
    assert len(rounds) <= 1


@pytest.mark.usefixtures("callers")
async def test_a_client_that_has_left_takes_no_place_of_a_round() -> None:
    refusals = Pace()
    answers = [refusals.of(REFUSAL, {}) for _ in range(4 * MOST)]
    left, last = answers[MOST:-1], answers[-1]
    for answer in left:
        assert isinstance(answer, asyncio.Future)
        answer.cancel()
    assert refusals.in_round == MOST
    await answered(last)
    assert refusals.in_round == 1


@pytest.mark.usefixtures("callers", "no_second_round")
async def test_refusals_of_doubted_credentials_have_the_same_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    async def examine(group: Any) -> list[bool]:
        return [name.startswith("wrong") for name in group]

    monkeypatch.setattr(pace, "pace", Pace())
    monkeypatch.setattr("tasks_app.transports.doubts.pace", pace.pace)
    doubts: Doubts[str] = Doubts(examine)
    wrong = [doubts.add(f"wrong-{number}", lambda: REFUSAL, {}) for number in range(2 * MOST)]
    right = doubts.add("right", lambda: REFUSAL, {})
    assert right is not None
    async with asyncio.timeout(PATIENCE):
        assert await right is None
    assert sum(answer is not None and answer.done() for answer in wrong) == MOST


@pytest.mark.usefixtures("callers", "no_second_round")
async def test_refusals_of_addresses_have_the_same_pace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(floods, "pace", Pace())
    monkeypatch.setattr(floods, "_read", lambda *_: object())
    monkeypatch.setattr(floods, "_refuse", lambda *_: REFUSAL)
    monkeypatch.setattr(floods.tally, "records", lambda _: False)
    monkeypatch.setattr(floods.strangers, "check_calls", lambda _: None)
    head: Any = type("Head", (), {"peer": None, "origin": "192.0.2.7", "scope": {}})
    error: Any = None
    answers: Any = [floods._refuse_address(head, error, b"") for _ in range(3 * MOST)]
    assert at_once(answers) == MOST
