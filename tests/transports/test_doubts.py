"""Groups of calls whose credentials may be wrong: none waits for ever, whatever fails, and few are examined in vain."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from tasks_app.process.answering import Whole
from tasks_app.transports import doubts
from tasks_app.transports.doubts import Doubts
from tests.conftest import PATIENCE

REFUSAL: Whole = (401, [], b"")


class Examiner:
    """Examines groups when it is told to, and finds each credential wrong that begins with `wrong`."""

    def __init__(self) -> None:
        self.groups: list[list[str]] = []
        self.began = asyncio.Event()
        self.may_go = asyncio.Event()

    async def examine(self, group: Sequence[str]) -> list[bool]:
        self.groups.append(list(group))
        self.began.set()
        await self.may_go.wait()
        return [credential.startswith("wrong") for credential in group]


@pytest.fixture
async def examiner(monkeypatch: pytest.MonkeyPatch) -> Examiner:
    monkeypatch.setattr(doubts, "GROUP_SECONDS", 0.001)
    return Examiner()


def refuse() -> Whole:
    return REFUSAL


async def results(*answers: Any) -> list[Whole | None]:
    async with asyncio.timeout(PATIENCE):
        return list(await asyncio.gather(*answers))


async def test_one_group_is_examined_at_a_time_while_the_next_one_collects(examiner: Examiner) -> None:
    calls: Doubts[str] = Doubts(examiner.examine)
    first = calls.add("wrong-1", refuse, {})
    async with asyncio.timeout(PATIENCE):
        await examiner.began.wait()
    others = [calls.add(name, refuse, {}) for name in ("wrong-2", "right")]
    await asyncio.sleep(0.02)
    assert examiner.groups == [["wrong-1"]]
    examiner.may_go.set()
    assert await results(first, *others) == [REFUSAL, REFUSAL, None]
    assert examiner.groups == [["wrong-1"], ["wrong-2", "right"]]


async def test_a_call_whose_client_has_left_is_not_examined(examiner: Examiner) -> None:
    calls: Doubts[str] = Doubts(examiner.examine)
    examiner.may_go.set()
    gone, present = calls.add("wrong-gone", refuse, {}), calls.add("wrong", refuse, {})
    assert gone is not None
    gone.cancel()
    assert await results(present) == [REFUSAL]
    assert examiner.groups == [["wrong"]]


async def test_calls_beyond_those_that_may_wait_go_to_the_application(
    examiner: Examiner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doubts, "MOST_WAITING", 3)
    calls: Doubts[str] = Doubts(examiner.examine)
    answers = [calls.add("wrong", refuse, {}) for _ in range(5)]
    assert [answer is None for answer in answers] == [False, False, False, True, True]
    examiner.may_go.set()
    assert await results(*answers[:3]) == [REFUSAL] * 3
    assert calls.add("wrong", refuse, {}) is not None


async def test_calls_that_cannot_be_refused_or_examined_go_to_the_application(examiner: Examiner) -> None:
    def fail(*_: object) -> Whole:
        raise ValueError("no refusal")

    calls: Doubts[str] = Doubts(examiner.examine)
    examiner.may_go.set()
    answers = [calls.add("wrong", one, {}) for one in (refuse, fail, refuse)]
    assert await results(*answers) == [REFUSAL, None, None]
    failing: Doubts[str] = Doubts(fail)  # type: ignore[arg-type]
    assert await results(failing.add("wrong", refuse, {}), failing.add("wrong", refuse, {})) == [None, None]
    assert await results(failing.add("wrong", refuse, {})) == [None]


async def test_calls_of_a_group_that_is_canceled_go_to_the_application(examiner: Examiner) -> None:
    calls: Doubts[str] = Doubts(examiner.examine)
    answer = calls.add("wrong", refuse, {})
    async with asyncio.timeout(PATIENCE):
        await examiner.began.wait()
    assert calls.group is not None
    calls.group.cancel()
    assert await results(answer) == [None]
    examiner.may_go.set()
    assert await results(calls.add("wrong", refuse, {})) == [REFUSAL]


def test_calls_of_another_loop_are_examined_there() -> None:
    async def ask(calls: Doubts[str], *, waits: bool) -> list[Whole | None]:
        answer = calls.add("wrong", refuse, {})
        return await results(answer) if waits else []

    async def examine(group: Sequence[str]) -> list[bool]:
        return [True] * len(group)

    calls: Doubts[str] = Doubts(examine)
    assert asyncio.run(ask(calls, waits=False)) == []
    assert asyncio.run(ask(calls, waits=True)) == [REFUSAL]
