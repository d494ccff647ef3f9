"""Slots: the runs that a process has at the same time, of async agents and in threads."""

from typing import Any

import pytest

from tasks_app.event_log import create_many
from tasks_app.runner.runner import Runner
from tests.conftest import Person
from tests.operations.rows import creation

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
ASYNC, SYNC = "form-coroutine", "form-function"


def claimed(runner: Runner) -> list[str]:
    """Return the agents of the tasks that it claims; all of them stay under way."""
    return sorted(run.read.agent for run in runner._claim()[0])


def test_a_process_has_as_many_runs_as_slots_of_each_kind(owner: Person, settings: Any) -> None:
    settings.A2A_ASYNC_SLOTS, settings.A2A_SYNC_SLOTS = 3, 2
    create_many([creation(owner, f"{agent}-{place}", agent=agent) for agent in (ASYNC, SYNC) for place in range(5)])
    runner = Runner()
    assert claimed(runner) == [ASYNC] * 3 + [SYNC] * 2
    assert claimed(runner) == []
    ended = next(task_id for task_id, run in runner.running.items() if run.is_async)
    del runner.running[ended]
    assert claimed(runner) == [ASYNC]
    ended = next(task_id for task_id, run in runner.running.items() if not run.is_async)
    del runner.running[ended]
    assert claimed(runner) == [SYNC]
    assert claimed(runner) == []


def test_a_process_that_is_alone_has_one_run_of_either_kind(owner: Person, settings: Any) -> None:
    create_many([creation(owner, f"{agent}-{place}", agent=agent) for agent in (ASYNC, SYNC) for place in range(2)])
    runner = Runner()
    runner.alone = True
    assert len(claimed(runner)) == 1
    assert claimed(runner) == []
