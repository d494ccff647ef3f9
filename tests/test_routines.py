"""Routines: their threads last as long as the process, and one that has ended is named."""

import sys
import threading
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest
from django.db import OperationalError

from tasks_app.process import services
from tasks_app.runner.runner import runner
from tasks_app.upkeep import deletion
from tasks_app.upkeep import retention as module
from tasks_app.upkeep import routine as routines
from tasks_app.upkeep.routine import Routine

PATIENCE = 10.0


class Exits(Routine):
    """A routine whose first round calls sys.exit()."""

    name = "exits"
    title = "exiting"
    at_once = True

    def __init__(self) -> None:
        super().__init__()
        self.rounds = 0
        self.goes_on = threading.Event()

    def run_round(self) -> None:
        self.rounds += 1
        if self.rounds == 1:
            sys.exit("enough")
        self.goes_on.set()


def test_a_routine_goes_on_after_a_round_that_calls_sys_exit(settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.A2A_SWEEP_SECONDS = 0.01
    routine = Exits()
    routine.start()
    assert routine.goes_on.wait(PATIENCE)
    assert routine.thread is not None
    assert routine.thread.is_alive()
    routine.stop()
    assert "exiting failed; trying again in 0.01 s" in caplog.text


class Lasts(Routine):
    """A routine whose round goes on until another routine is told to stop."""

    name = "lasts"
    title = "lasting"
    at_once = True

    def __init__(self) -> None:
        super().__init__()
        self.other: Routine = self
        self.began = threading.Event()
        self.has_heard = False

    def run_round(self) -> None:
        self.began.set()
        self.has_heard = self.other.stopping.wait(PATIENCE / 2)


def test_the_last_rounds_of_all_routines_end_at_the_same_time() -> None:
    first, last = Lasts(), Lasts()
    first.other, last.other = last, first
    for routine in (first, last):
        routine.start()
        assert routine.began.wait(PATIENCE)
    services._stop_in_turn([first, last])
    assert last.has_heard, "the one that is stopped first did not wait alone"


def test_the_last_writes_of_a_process_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def hang(seconds: float) -> None:
        nonlocal now
        now += max(0.0, seconds)

    monkeypatch.setattr(services, "monotonic", lambda: now)
    for name in ("tally.drain", "recorder.drain", "bridge.stop"):
        monkeypatch.setattr(f"tasks_app.process.services.{name}", hang)
    monkeypatch.setattr(services.recorder, "offer", int)
    monkeypatch.setattr(services, "_announce", lambda ended: hang(1) if ended else None)
    services._write_the_rest()
    assert now == services.LAST_SECONDS + 1


def test_a_routine_whose_thread_has_ended_is_a_trouble_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    routine, sentence = Exits(), "exiting: its thread has ended; restart the process"
    with monkeypatch.context() as patch:
        patch.setattr(services, "_running", [routine])
        assert sentence not in services.troubles()
        routine.thread = ended_thread("exits")
        assert sentence in services.troubles()


def ended_thread(name: str) -> threading.Thread:
    thread = threading.Thread(target=int, name=name)
    thread.start()
    thread.join()
    return thread


@pytest.mark.parametrize("service", [services.local, services.celery, services.census, services.sender])
def test_any_service_whose_thread_has_ended_is_a_trouble_of_its_process(
    service: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "thread", ended_thread("the work"))
    with monkeypatch.context() as patch:
        patch.setattr(services, "_running", [service])
        assert "the work: its thread has ended; restart the process" in services.troubles()


def test_a_runner_whose_heartbeat_has_ended_is_a_trouble_of_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    sentence = "runner: its loop or its heartbeat has ended; restart the process"
    monkeypatch.setattr(runner, "control", SimpleNamespace(thread=threading.current_thread()))
    monkeypatch.setattr(runner.heartbeat, "thread", threading.current_thread())
    assert sentence not in services.troubles()
    monkeypatch.setattr(runner.heartbeat, "thread", ended_thread("heartbeat"))
    assert sentence in services.troubles()


def test_a_round_without_a_database_fails_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(function: object) -> NoReturn:
        raise OperationalError("connection refused")

    monkeypatch.setattr(module, "on_postgres", lambda: True)
    monkeypatch.setattr(module, "run_on_lane", refuse)
    monkeypatch.setattr(deletion, "run_on_lane", refuse)
    monkeypatch.setattr(routines, "failures", {})
    retention = module.Retention()
    monkeypatch.setattr(module, "retention_routine", retention)
    for _ in range(2):
        retention.try_round()
    lines = [record.getMessage() for record in caplog.records]
    assert [line.rpartition(": ")[2] for line in lines] == ["connection refused"] * 2
    assert module.troubles() == []
    assert routines.troubles() == ["retention: its last 2 rounds have failed, see the log"]
