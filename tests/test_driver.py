"""A coroutine within the asyncio task of its caller: it ends as in a task of its own, and is left behind if it must."""

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import pytest

from tasks_app.runner import driver
from tasks_app.runner.driver import Driver
from tests.conftest import PATIENCE

SOON, LATE, GRACE = 0.05, PATIENCE, 0.2


class Story:
    """Coroutines that write down what happens to them."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.go = asyncio.Event()
        self.expire: Callable[[], object] = lambda: None
        """Ends the limit of the driver."""

    async def ends_at_once(self) -> None:
        self.steps.append("end")

    async def waits(self) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await asyncio.sleep(0.001)
        self.steps.append(await asyncio.ensure_future(asyncio.sleep(0.001, "end")))

    async def sleeps(self) -> None:
        await asyncio.sleep(LATE)

    async def has_a_limit_of_its_own(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.001):
                try:
                    await asyncio.sleep(LATE)
                finally:
                    await asyncio.sleep(0.001)
                    self.steps.append("tidy")
        await asyncio.sleep(0.001)
        self.steps.append("end")

    async def has_a_group(self) -> None:
        async def fails() -> None:
            raise ValueError("the part")

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                await asyncio.sleep(LATE)
        except* ValueError:
            self.steps.append("end")

    async def has_a_cancelled_part(self) -> None:
        part = asyncio.ensure_future(asyncio.sleep(LATE))
        asyncio.get_running_loop().call_soon(part.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await part
        await asyncio.sleep(0.001)
        self.steps.append("end")

    async def waits_for_a_part(self) -> None:
        async def part() -> None:
            try:
                await asyncio.sleep(LATE)
            finally:
                await asyncio.sleep(0.001)
                self.steps.append("tidy part")

        try:
            await asyncio.ensure_future(part())
        finally:
            await asyncio.sleep(0)
            self.steps.append("tidy")

    async def tidies_up_within_a_limit(self) -> None:
        try:
            await asyncio.sleep(LATE)
        finally:
            try:
                async with asyncio.timeout(SOON):
                    await asyncio.sleep(LATE)
            except TimeoutError:
                self.steps.append("tidy")

    async def tidies_up_beyond_its_limit(self) -> None:
        async with asyncio.timeout(None) as limit:
            try:
                await asyncio.sleep(LATE)
            finally:
                # It ends after the caller's for certain: on a busy machine two limits close together may end as one.
                limit.reschedule(asyncio.get_running_loop().time() + SOON)
                try:
                    await asyncio.sleep(LATE)
                finally:
                    self.steps.append("tidy")

    async def tidies_up_in_a_group(self) -> None:
        async def fails() -> None:
            await asyncio.sleep(SOON)
            raise ValueError("the part")

        try:
            await asyncio.sleep(LATE)
        finally:
            async with asyncio.TaskGroup() as group:
                group.create_task(fails())
                try:
                    await asyncio.sleep(LATE)
                finally:
                    self.steps.append("tidy")

    async def is_at_its_own_limit_before(self) -> None:
        async with asyncio.timeout(0):
            try:
                await asyncio.sleep(LATE)
            finally:
                # On a busy machine a timer could end in the same round as that limit, which is another case.
                asyncio.get_running_loop().call_soon(self.expire)
                try:
                    await asyncio.sleep(LATE)
                finally:
                    self.steps.append("tidy")

    async def goes_on_within_a_limit(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(SOON + GRACE / 4):
                await self.goes_on()

    async def goes_on(self) -> None:
        while not self.go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.go.wait()
        self.steps.append("end")

    async def goes_on_in_rounds(self) -> None:
        while not self.go.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
        self.steps.append("end")

    async def fails(self) -> None:
        await asyncio.sleep(0.001)
        raise ValueError("the agent")

    async def fails_at_its_limit(self) -> None:
        try:
            await asyncio.sleep(LATE)
        finally:
            raise ValueError("the agent")


class Drive:
    """A driver, and what it reports."""

    def __init__(self, work: Coroutine[Any, Any, None], seconds: float, grace: float = GRACE) -> None:
        self.left: list[asyncio.Task[None]] = []
        self.expiries = 0
        self.driver = Driver(work, seconds, grace)
        self.driver.on_leave, self.driver.on_expiry = self.left.append, self.expire

    def expire(self) -> None:
        self.expiries += 1

    async def end(self) -> bool:
        return await self.driver


Work = Callable[[Story], Coroutine[Any, Any, None]]


@pytest.mark.parametrize(
    "work",
    [
        Story.ends_at_once,
        Story.waits,
        Story.has_a_limit_of_its_own,
        Story.has_a_group,
        Story.has_a_cancelled_part,
    ],
)
async def test_work_that_ends_in_time_ends_as_in_a_task(work: Work) -> None:
    story, native = Story(), Story()
    drive = Drive(work(story), LATE)
    assert await drive.end() is True
    await asyncio.ensure_future(work(native))
    assert story.steps == native.steps
    assert story.steps[-1] == "end"
    assert (drive.left, drive.expiries) == ([], 0)
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


async def test_an_error_of_the_work_is_raised() -> None:
    with pytest.raises(ValueError, match="the agent"):
        await Drive(Story().fails(), LATE).end()


@pytest.mark.parametrize(
    ("work", "steps"),
    [
        (Story.sleeps, []),
        (Story.waits_for_a_part, ["tidy part", "tidy"]),
        (Story.fails_at_its_limit, []),
        (Story.tidies_up_within_a_limit, ["tidy"]),
        (Story.tidies_up_beyond_its_limit, ["tidy"]),
        (Story.tidies_up_in_a_group, ["tidy"]),
    ],
)
async def test_work_that_heeds_its_end_may_tidy_up(work: Work, steps: list[str]) -> None:
    story = Story()
    await _end_in_order(story, Drive(work(story), SOON, grace=LATE), steps)


async def test_work_that_is_at_its_own_limit_before_may_tidy_up() -> None:
    story = Story()
    drive = Drive(story.is_at_its_own_limit_before(), LATE, grace=LATE)
    task = asyncio.current_task()
    assert task
    story.expire = partial(drive.driver._expire, task)
    await _end_in_order(story, drive, ["tidy"])


async def _end_in_order(story: Story, drive: Drive, steps: list[str]) -> None:
    """Have work end at its limit. A busy machine may take longer than the usual grace."""
    assert await drive.end() is False
    assert (story.steps, drive.left, drive.expiries) == (steps, [], 1)
    await asyncio.sleep(0)  # The caller goes on as if it had not been cancelled.
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


@pytest.mark.parametrize("work", [Story.goes_on, Story.goes_on_in_rounds, Story.goes_on_within_a_limit])
async def test_work_that_goes_on_is_left_behind_and_ends_by_itself(work: Work) -> None:
    story = Story()
    drive = Drive(work(story), SOON)
    assert await drive.end() is False
    assert (story.steps, len(drive.left), drive.expiries) == ([], 1, 1)
    story.go.set()
    async with asyncio.timeout(PATIENCE):
        await drive.left[0]
    assert story.steps == ["end"]


async def test_work_that_goes_on_is_left_behind_by_a_timer_that_is_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timers of uvloop are whole milliseconds. The work must not take a step while its future has no outcome."""
    end_of = driver._end_of

    async def early(future: asyncio.Future[Any], seconds: float | None) -> bool:
        return await end_of(future, None if seconds is None else seconds / 2)

    monkeypatch.setattr(driver, "_end_of", early)
    story = Story()
    drive = Drive(story.goes_on(), SOON)
    assert await drive.end() is False
    story.go.set()
    async with asyncio.timeout(PATIENCE):
        await drive.left[0]
    assert story.steps == ["end"]


async def test_work_that_is_left_behind_may_fail() -> None:
    async def fails_late() -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(LATE)
        await asyncio.sleep(2 * GRACE)
        raise ValueError("late")

    drive = Drive(fails_late(), SOON)
    assert await drive.end() is False
    with pytest.raises(ValueError, match="late"):
        await drive.left[0]


@pytest.mark.parametrize("work", [Story.sleeps, Story.waits_for_a_part])
async def test_a_caller_that_is_cancelled_ends_with_the_work(work: Work) -> None:
    story, native = Story(), Story()
    drive = Drive(work(story), LATE)
    callers = [asyncio.ensure_future(drive.end()), asyncio.ensure_future(work(native))]
    await asyncio.sleep(SOON)
    for caller in callers:
        caller.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait(callers)
    assert [caller.cancelled() for caller in callers] == [True, True]
    assert story.steps == native.steps
    assert drive.expiries == 0


async def test_a_caller_that_is_cancelled_waits_for_no_more_than_the_limit() -> None:
    story = Story()
    drive = Drive(story.goes_on(), SOON)
    caller = asyncio.ensure_future(drive.end())
    await asyncio.sleep(0)
    caller.cancel()
    async with asyncio.timeout(PATIENCE):
        await asyncio.wait([caller])
    assert (caller.cancelled(), len(drive.left)) == (True, 1)
    story.go.set()
    await drive.left[0]


async def test_a_caller_that_is_cancelled_within_the_grace_gets_its_answer() -> None:
    story = Story()
    drive = Drive(story.goes_on(), SOON)
    caller = asyncio.ensure_future(drive.end())
    async with asyncio.timeout(PATIENCE):
        while drive.driver.deadline is None:  # noqa: ASYNC110  # nothing announces it
            await asyncio.sleep(0.001)
        caller.cancel()
        assert await caller is False
    assert (caller.cancelling(), len(drive.left)) == (0, 1)
    story.go.set()
    await drive.left[0]


@pytest.mark.parametrize("error", [GeneratorExit, SystemExit, StopAsyncIteration])
async def test_an_error_of_what_is_awaited_is_raised_in_the_work(error: type[BaseException]) -> None:
    steps = []

    async def work() -> None:
        future = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(future.set_exception, error())
        try:
            await future
        except error:
            steps.append("caught")

    assert await Drive(work(), LATE).end() is True
    assert steps == ["caught"]


async def test_work_of_a_caller_that_is_closed_is_closed_too() -> None:
    steps = []

    async def work() -> None:
        try:
            await asyncio.sleep(LATE)
        finally:
            steps.append("closed")

    caller = Drive(work(), LATE).end()
    caller.send(None)
    caller.close()
    assert steps == ["closed"]
