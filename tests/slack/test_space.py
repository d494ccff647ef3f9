"""The space for the files of questions: what one workspace sends keeps no other from its turn."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from tasks_app.slack.attachments import GROWTH, size_of
from tasks_app.slack.questions import Turn
from tasks_app.slack.space import MOST_FILES, Space
from tests.conftest import until
from tests.slack.conftest import Front
from tests.support.slack_api import Json, mention

SHARE = 100


@pytest.fixture(autouse=True)
def _share(settings: Any) -> None:
    settings.A2A_ATTACHMENT_BYTES = SHARE // MOST_FILES


class Crowd:
    """Questions of several workspaces that want space."""

    def __init__(self) -> None:
        self.space = Space()
        self.order: list[str] = []
        """The names of the questions that have got space."""
        self.ends: dict[str, asyncio.Event] = {}
        self.works: dict[str, asyncio.Task[None]] = {}

    async def ask(self, name: str, workspace_id: int, size: int) -> None:
        self.ends[name] = asyncio.Event()
        self.works[name] = asyncio.ensure_future(self._work(name, workspace_id, size))
        await self.settle()

    async def _work(self, name: str, workspace_id: int, size: int) -> None:
        async with self.space.hold(workspace_id, size):
            self.order.append(name)
            await self.ends[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self.ends[name].set()
            await self.settle()

    async def cancel(self, name: str) -> None:
        self.works[name].cancel()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def leave(self) -> None:
        for end in self.ends.values():
            end.set()
        await asyncio.gather(*self.works.values(), return_exceptions=True)
        assert not self.space.amounts
        assert not self.space.queues


def test_questions_of_a_workspace_wait_in_order() -> None:
    async def story() -> None:
        crowd = Crowd()
        for name, size in (("a", 60), ("b", 60), ("c", 10)):
            await crowd.ask(name, 1, size)
        assert crowd.order == ["a"], "a small question does not overtake"
        await crowd.end("a")
        assert crowd.order == ["a", "b", "c"]
        await crowd.leave()

    asyncio.run(story())


def test_a_workspace_with_many_questions_keeps_no_other_from_its_turn() -> None:
    async def story() -> None:
        crowd = Crowd()
        for number in range(5):
            await crowd.ask(f"a{number}", 1, SHARE)
            await crowd.ask(f"b{number}", 2, SHARE)
        await crowd.ask("c", 3, SHARE)
        assert crowd.order == ["a0", "b0"]
        await crowd.end("a0", "b0", "a1")
        assert crowd.order == ["a0", "b0", "a1", "b1", "c"], "it waits for one question of each other workspace"
        await crowd.leave()

    asyncio.run(story())


def test_small_questions_keep_no_large_one_from_its_turn() -> None:
    async def story() -> None:
        crowd = Crowd()
        await crowd.ask("a", 1, SHARE)
        await crowd.ask("b", 2, SHARE // 2)
        await crowd.ask("large", 3, SHARE)
        await crowd.ask("small", 4, 1)
        assert crowd.order == ["a", "b"]
        await crowd.end("b")
        assert crowd.order == ["a", "b", "large"]
        await crowd.leave()

    asyncio.run(story())


def test_a_question_that_is_given_up_leaves_its_space() -> None:
    async def story() -> None:
        crowd = Crowd()
        for name in ("a", "b", "c"):
            await crowd.ask(name, 1, SHARE)
        await crowd.cancel("b")
        await crowd.cancel("a")
        assert crowd.order == ["a", "c"]
        await crowd.leave()

    asyncio.run(story())


def test_a_question_that_is_given_up_in_its_turn_leaves_its_space() -> None:
    async def story() -> None:
        crowd = Crowd()
        for name in ("a", "b", "c"):
            await crowd.ask(name, 1, SHARE)
        crowd.ends["a"].set()
        crowd.works["b"].cancel()
        await crowd.settle()
        assert crowd.order == ["a", "c"]
        await crowd.leave()

    asyncio.run(story())


def test_a_question_without_files_waits_for_none() -> None:
    async def story() -> None:
        crowd = Crowd()
        await crowd.ask("a", 1, SHARE)
        await crowd.ask("b", 1, SHARE)
        await crowd.ask("words", 1, 0)
        assert crowd.order == ["a", "words"]
        await crowd.leave()

    asyncio.run(story())


@pytest.mark.parametrize(
    ("file", "size"),
    [
        ({"size": 1}, GROWTH + 1),
        ({"size": 10**6}, 10**6),
        ({"size": 10**6 + 1}, 0),
        ({}, 10**6),
        ({"size": -1}, GROWTH),
    ],
)
def test_a_file_has_as_much_space_as_is_read_of_it(settings: Any, file: Json, size: int) -> None:
    settings.A2A_ATTACHMENT_BYTES = 10**6

    class Question:
        files = (file,) * (MOST_FILES + 1)

    turn: Turn = Question()  # type: ignore[assignment]  # the files are all that it looks at
    assert size_of(turn) == MOST_FILES * size


def files_of(front: Front) -> list[Json]:
    size, url = SHARE // MOST_FILES, front.slack.file_url("a.bin")
    front.slack.files["a.bin"] = bytes(size)
    return [{"name": "a.bin", "mimetype": "application/zip", "url_private": url, "size": size}] * MOST_FILES


async def wait(condition: Callable[[], object], what: str) -> None:
    await asyncio.to_thread(until, condition, what)


@pytest.mark.storage
def test_a_question_with_files_is_fetched_when_those_before_are_stored(front: Front) -> None:
    """Its task is stored at the first reply. The answer may take hours, and keeps no other question waiting."""
    stored, over = asyncio.Event(), asyncio.Event()

    async def story(files: list[Json]) -> None:
        for number in range(3):
            ts = f"1700000000.{number:06}"
            await front.send(mention(f"{number}", event_id=f"Ev{number}", ts=ts, files=files, subtype="file_share"))
        responder = front.responder()
        front.zone.before = lambda number: stored.wait() if number == 0 else over.wait()
        front.zone.replies = [*front.zone.replies, *front.zone.replies]
        await responder.begin_turns()
        space = responder.api.space
        await wait(lambda: front.zone.asked and sum(map(len, space.queues.values())) == 2, "two questions wait")
        assert (len(front.zone.asked), front.slack.count("file")) == (1, MOST_FILES)
        stored.set()
        await wait(lambda: len(front.zone.asked) == 3, "all are stored")
        assert not any(work.done() for work in responder.turns)
        over.set()
        await front.answer(responder)
        assert not space.amounts

    asyncio.run(story(files_of(front)))
    assert {row.state for row in front.questions()} == {"answered"}
    assert [len(luggage.files) for _, luggage in front.zone.asked] == [MOST_FILES] * 3
