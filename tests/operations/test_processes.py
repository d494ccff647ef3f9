"""The row of a process, and the clock that it deletes by."""

import time
import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

import tasks_app
from tasks_app import clock
from tasks_app.database.sql import on_postgres
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Act, Exchange, Process
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.upkeep import processes, routine
from tasks_app.upkeep.processes import ProcessRow, clock_doubts, confirm_clock
from tasks_app.upkeep.routine import Routine
from tests.support.commands import printed

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
DAY = 86_400
ANN = Operator("ann", COMMAND)
REAL = time.time_ns


@pytest.fixture(autouse=True)
def clean_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a clock and a row of its own."""
    monkeypatch.setattr(clock, "anchor", clock.Anchor())
    monkeypatch.setattr(processes, "process_row", ProcessRow())


def shift_wall(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set this machine's clock."""

    def shifted() -> int:
        return REAL() + int(seconds * 1e9)

    monkeypatch.setattr(clock.time, "time_ns", shifted)


def test_the_time_is_the_databases_whatever_this_machine_says(monkeypatch: pytest.MonkeyPatch) -> None:
    shift_wall(monkeypatch, 40 * -DAY)
    clock.anchor.measure()
    off = abs((clock.now() - datetime.now(UTC)).total_seconds())
    assert off < 2 if on_postgres() else off == pytest.approx(40 * DAY, abs=2)
    assert uuid7_at(clock.now() - timedelta(seconds=2)) < uuid7() < uuid7_at(clock.now() + timedelta(seconds=2))


@pytest.mark.parametrize(("seconds", "words"), [(2 * DAY, "172800 s ahead of"), (40 * -DAY, "3456000 s behind")])
def test_a_process_whose_clock_is_wrong_says_so(seconds: float, words: str) -> None:
    clock.anchor.shift -= int(seconds * 1e9)  # as it is after a first measurement on PostgreSQL
    (sentence,) = clock.anchor.doubts()
    assert words in sentence
    assert "deletes nothing" in sentence


def test_a_clock_a_few_seconds_off_is_no_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    shift_wall(monkeypatch, 30)
    clock.anchor.measure()
    assert clock.anchor.doubts() == []


def test_a_clock_that_jumps_is_not_trusted_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    processes.process_row.write()
    assert clock_doubts() == []
    shift_wall(monkeypatch, 3 * 3600)
    processes.process_row.write()
    assert any("was set by +10800 s" in sentence for sentence in clock_doubts())
    shift_wall(monkeypatch, 0)  # and right again
    processes.process_row.write()
    assert any("was set by -10800 s" in sentence for sentence in clock_doubts())
    assert clock.anchor.jumped is not None
    clock.anchor.jumped -= int((clock.SETTLING + 1) * 1e9)
    assert clock_doubts() == []


def test_the_row_says_who_runs_and_how(monkeypatch: pytest.MonkeyPatch) -> None:
    processes.process_row.begin("worker")
    monkeypatch.setattr(processes, "trouble_sources", [*processes.trouble_sources, lambda: ["a part: it is late"]])
    processes.process_row.write(lost=3)
    row = Process.objects.get(name=processes.process_row.name)
    assert (row.role, row.version, row.lost, row.ended_at) == ("worker", tasks_app.__version__, 3, None)
    assert "a part: it is late" in orjson.loads(row.troubles)
    assert abs(row.clock_off) < 1
    assert row.steady_at == row.seen_at
    assert processes.process_row.write_age < 5
    processes.process_row.write(lost=4, ended=True)
    row.refresh_from_db()
    assert (row.lost, row.ended_at) == (4, row.seen_at)


def test_rows_of_processes_that_are_gone_stay_for_a_day() -> None:
    now = clock.now()
    for name, age in (("gone", 25), ("recent", 23)):
        then = now - timedelta(hours=age)
        Process.objects.create(name=name, role="web", version="1", started_at=then, seen_at=then)
    processes.process_row.write()
    assert set(Process.objects.values_list("name", flat=True)) == {"recent", processes.process_row.name}


def write_row(ago: timedelta) -> None:
    """A process that trusted its clock wrote its row then."""
    then = clock.now() - ago
    Process.objects.create(name="other", role="web", version="1", started_at=then, seen_at=then, steady_at=then)


def test_after_a_long_gap_nothing_is_deleted_for_a_day() -> None:
    write_row(timedelta(days=365))
    processes.process_row.write()
    (sentence,) = clock_doubts()
    assert "365 days ago" in sentence
    row = Process.objects.get(name=processes.process_row.name)
    assert row.steady_at is None
    assert orjson.loads(row.troubles) == [sentence]
    assert Process.objects.filter(name="other").exists(), "it is the memory of the clock"
    processes.process_row.started -= processes.TRIAL + 1
    processes.process_row.write()
    assert clock_doubts() == []
    row.refresh_from_db()
    assert row.steady_at is not None


def test_a_restart_does_not_end_the_doubt_about_a_gap() -> None:
    write_row(timedelta(days=30))
    processes.process_row.write()
    processes.process_row.begin("web")
    processes.process_row.write()
    assert clock_doubts()


def test_a_weekend_is_no_gap() -> None:
    write_row(timedelta(days=2, hours=20))
    processes.process_row.write()
    assert clock_doubts() == []


def test_rows_from_the_future_make_the_clock_doubtful_until_it_is_confirmed() -> None:
    write_row(timedelta(days=-200))
    processes.process_row.started -= processes.TRIAL + 1
    processes.process_row.write()
    (sentence,) = clock_doubts()
    assert "still to come" in sentence
    confirm_clock(ANN)
    processes.process_row.write()
    assert clock_doubts() == []


def test_a_clock_is_confirmed_with_its_act_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: Any) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(processes, "record_acts", die)
    with pytest.raises(ZeroDivisionError):
        confirm_clock(ANN)
    assert not Process.objects.filter(role="operator").exists()
    monkeypatch.undo()
    assert confirm_clock(ANN).role == "operator"
    assert list(Act.objects.values_list("operator", "verb")) == [("ann", "confirm clock")]


def test_records_are_the_memory_where_there_is_no_row() -> None:
    then = clock.now() + timedelta(days=365)
    Exchange.objects.create(id=uuid7_at(then), rpc_id_type="absent", door="http", created_at=then)
    processes.process_row.write()
    (sentence,) = clock_doubts()
    assert "still to come" in sentence


def test_the_command_lists_the_processes_and_confirms_the_clock() -> None:
    write_row(timedelta(days=30))
    processes.process_row.write()

    def lines(*arguments: str) -> list[dict[str, Any]]:
        return printed("a2a", "processes", *arguments)

    first, _ = lines()
    assert first["name"] == processes.process_row.name
    assert "30 days ago" in first["troubles"][0]
    assert "operator:ann" in {line["name"] for line in lines("--clock-is-right", "--operator", "ann")}
    processes.process_row.write()
    assert clock_doubts() == []


def test_a_routine_that_goes_on_failing_is_a_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Routine):
        name = "broken"
        title = "the test"
        fails = True

        def run_round(self) -> None:
            if self.fails:
                raise OverflowError("date value out of range")

    monkeypatch.setattr(routine, "failures", {})
    broken = Broken()
    broken.try_round()
    assert processes.troubles() == []
    broken.try_round()
    assert processes.troubles() == ["broken: its last 2 rounds have failed, see the log"]
    broken.fails = False
    broken.try_round()
    assert processes.troubles() == []


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    assert tasks_app.__version__ == project["project"]["version"]
