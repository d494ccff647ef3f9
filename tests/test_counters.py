"""Counters: what they count, how they are written, and that threads do not disturb each other."""

import re
import threading
from pathlib import Path

import pytest
from django.db import OperationalError

from a2a.errors import TaskNotFound
from tasks_app import counters
from tasks_app.counters import Counter, db_operations
from tasks_app.database.bridge import bridge
from tasks_app.database.counting import count_results
from tasks_app.database.errors import Busy
from tasks_app.database.work import LOCKED, DoApart
from tests.conftest import ROOT

pytestmark = pytest.mark.requirement("VAPORA-07")


class Probe(DoApart[int], frozen=True):
    """A work item that no other test counts."""


def counted(kind: str) -> dict[str, int]:
    return {outcome: count for (name, outcome), count in db_operations.total().items() if name == kind}


def test_a_counter_is_written_with_its_labels() -> None:
    counter = Counter("x_total", "Things.", ("kind", "outcome"))
    counter.add(("b", 'a "word"\\\n'), 2)
    counter.add(("a", "done"))
    counter.add(("a", "done"))
    others: dict[str, counters.Snapshot] = {
        "box:7:ab": {"x_total": [["a", "done", 5], ["another version", 1]]},
        "box:8:cd": {"y_total": [["a", "done", 1]]},
    }
    assert counter.lines(others) == [
        "# HELP x_total Things.",
        "# TYPE x_total counter",
        'x_total{kind="a",outcome="done"} 2',
        'x_total{kind="b",outcome="a \\"word\\"\\\\\\n"} 2',
        'x_total{kind="a",outcome="done",process="box:7:ab"} 5',
    ]


def test_the_numbers_of_all_threads_are_added_also_of_those_that_have_ended() -> None:
    counter = Counter("x_total", "Things.", ("kind",))

    def work() -> None:
        for _ in range(1_000):
            counter.add(("a",))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counter.total() == {("a",): 8_000}


def test_each_outcome_of_a_work_item_is_counted() -> None:
    results = [1, None, TaskNotFound(), LOCKED, OperationalError("gone"), Busy(), ValueError("odd"), 2]
    count_results(Probe, results)
    assert counted("Probe") == {"done": 3, "refused": 1, "again": 1, "failed": 3}


@pytest.mark.usefixtures("lanes")
def test_work_on_a_lane_is_counted_by_its_class_and_outcome() -> None:
    class Counted(DoApart[int], frozen=True):
        pass

    class Failing(DoApart[int], frozen=True):
        @classmethod
        def do_many(cls, items: object) -> list[int]:
            raise OperationalError("the disk is full")

    def absent() -> int:
        raise TaskNotFound(taskId="t")

    assert bridge.do(Counted(lambda: 7)) == 7
    with pytest.raises(TaskNotFound):
        bridge.do(Counted(absent))
    with pytest.raises(OperationalError):
        bridge.do(Failing(lambda: 7))
    assert counted("Counted") == {"done": 1, "refused": 1}
    assert counted("Failing") == {"failed": 1}


@pytest.mark.requirement("VAPORA-11")
@pytest.mark.parametrize("page", ["operations.md", "alerts.yml"])
def test_documents_name_the_counters_that_exist(page: str) -> None:
    text = (Path(ROOT) / "docs" / page).read_text("utf-8")
    names = {counter.name for counter in counters.ALL}
    assert set(re.findall(r"\ba2a_\w+_total\b", text)) == names
    labels = {label for pairs in re.findall(r"_total\{(.*?)\}", text) for label in re.findall(r"(\w+)=", pairs)}
    assert labels <= {label for counter in counters.ALL for label in counter.labels}
