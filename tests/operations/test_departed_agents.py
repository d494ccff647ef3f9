"""Agents that are gone from the folder of agents: nothing of them stays in a process but their runs."""

import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from a2a.agents import agent, registry
from a2a.requests import CancelTask
from a2a.run import Run
from tasks_app.runner import quick
from tasks_app.runner.runner import runner
from tasks_app.upkeep.agents import agents_routine
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("service")]


@agent(name="departs-quickly", quick=True)
def departs_quickly(run: Run) -> str:
    """Answers in a thread, within the call."""
    return run.text


BEGUN, FREE = threading.Event(), threading.Event()


@agent(name="departs-late", quick=True)
def departs_late(run: Run) -> str:
    """Answers only when it is told to."""
    BEGUN.set()
    FREE.wait(PATIENCE)
    return run.text


def remove(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(registry, "_agents", {own.name: own for own in registry if own.name != name})


def test_the_loop_of_an_agent_that_is_gone_ends_with_its_last_run(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = sent(owner, agent="gate", return_immediately=True)
    until(lambda: task.id in runner.running and "gate" in runner.loops.current, "the agent is at work")
    place = runner.loops.current["gate"]
    agents_routine.run_round()
    remove(monkeypatch, "gate")
    agents_routine.run_round()
    assert place.thread.is_alive(), "its run is at work"
    ask(owner, CancelTask(id=task.id))

    def is_gone() -> bool:
        agents_routine.run_round()
        return not place.thread.is_alive()

    until(is_gone, "the loop ends")
    assert "gate" not in runner.loops.current


def test_the_threads_of_a_quick_agent_that_is_gone_end(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    sent(owner, agent="departs-quickly")
    threads = list(quick.THREADS["departs-quickly"]._threads)
    agents_routine.run_round()
    assert [thread.is_alive() for thread in threads] == [True]
    remove(monkeypatch, "departs-quickly")
    agents_routine.run_round()

    def are_gone() -> bool:
        gc.collect()
        return not any(thread.is_alive() for thread in threads)

    until(are_gone, "the threads end")


@pytest.mark.usefixtures("prompt_threads")
def test_a_run_of_an_agent_that_is_gone_counts_beyond_its_time(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its money is settled at its end, and operators see that it goes on."""
    monkeypatch.setattr(quick, "LIMIT", 0.5)
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(sent, owner, agent="departs-late")
        assert BEGUN.wait(PATIENCE)
        remove(monkeypatch, "departs-late")
        agents_routine.run_round()
        asking.result(PATIENCE)
    assert [late.run.agent.name for late in quick.THREADS["departs-late"].late.values()] == ["departs-late"]
    FREE.set()

    def is_forgotten() -> bool:
        agents_routine.run_round()
        return "departs-late" not in quick.THREADS

    until(is_forgotten, "the run has ended")
