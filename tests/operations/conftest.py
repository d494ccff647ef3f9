"""After every operation test each log of the database is replayed; and what tests of webhooks and retention share."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.runner.quick import Threads
from tests.conftest import PATIENCE
from tests.support.receiver import Receiver, receiver


@pytest.fixture(autouse=True)
def _replayed(replay: None) -> None:
    """Replay each log at the end, as the fixture `replay` does."""


@pytest.fixture
def loopback(settings: Any) -> None:
    """Webhooks may lead to this machine."""
    settings.A2A_OUTBOUND_LOOPBACK = True


@pytest.fixture
def there() -> Iterator[Receiver]:
    """Give a receiver of webhooks."""
    with receiver() as found:
        yield found


@pytest.fixture
def own_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a clock of its own. What the process knows of its clock is forgotten before each test."""
    monkeypatch.setattr(clock, "anchor", clock.Anchor())


@pytest.fixture
def prompt_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the time of sync quick agents begin when they do. One whose thread a busy machine leaves waiting for longer
    than a short limit would never be called."""
    submit = Threads.submit

    def submit_and_wait(threads: Threads, function: Callable[..., Any], /, *arguments: Any) -> Future[Any]:
        begun = threading.Event()

        def begin() -> Any:
            begun.set()
            return function(*arguments)

        future = submit(threads, begin)
        assert begun.wait(PATIENCE)
        return future

    monkeypatch.setattr(Threads, "submit", submit_and_wait)


@pytest.fixture
def isolation(settings: Any) -> None:
    """Let calls wait longer for isolated agents of tests: each process imports the tests, which takes a busy machine
    seconds."""
    settings.A2A_WAIT_SECONDS = PATIENCE
