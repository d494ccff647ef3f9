"""Counters of what this process does, for `GET /metrics`. Their names and labels are an interface to operators."""

import threading
from collections.abc import Mapping, Sequence
from typing import Final

Labels = tuple[str, ...]
Snapshot = dict[str, list[list[str | int]]]
"""The numbers of a process by the name of their counter: the values of the labels, and the number, in each list."""


class Counter:
    """A number for each set of labels. Each thread adds to numbers of its own, so that adding takes no lock."""

    def __init__(self, name: str, about: str, labels: Labels) -> None:
        self.name = name
        self.about = about
        self.labels = labels
        self._local = threading.local()
        self._threads: list[dict[Labels, int]] = []
        """The numbers of all threads, also of those that have ended."""

    def add(self, values: Labels, count: int = 1) -> None:
        """Add to the number of these values, one for each label."""
        try:
            numbers = self._local.numbers
        except AttributeError:
            numbers = self._local.numbers = {}
            self._threads.append(numbers)
        numbers[values] = numbers.get(values, 0) + count

    def total(self) -> dict[Labels, int]:
        """Return the number of each set of values, as all threads have counted it."""
        total: dict[Labels, int] = {}
        for numbers in list(self._threads):
            # Another thread may add a key meanwhile. The copy is a single step of the interpreter.
            for values, count in numbers.copy().items():
                total[values] = total.get(values, 0) + count
        return total

    def snapshot(self) -> list[list[str | int]]:
        """Return the numbers as JSON values."""
        return [[*values, count] for values, count in sorted(self.total().items())]

    def sums(self, others: Mapping[str, Snapshot]) -> dict[Labels, int]:
        """Return the number of each set of values in this process and in others together."""
        sums = self.total()
        for snapshot in others.values():
            for *values, count in snapshot.get(self.name, ()):
                labels = tuple(str(value) for value in values)
                sums[labels] = sums.get(labels, 0) + int(count)
        return sums

    def lines(self, others: Mapping[str, Snapshot]) -> list[str]:
        """Return the counter in the text format of Prometheus: of this process, and of others by their names."""
        head = [f"# HELP {self.name} {self.about}", f"# TYPE {self.name} counter"]
        own = [self._line(self.labels, values) for values in self.snapshot()]
        labels = (*self.labels, PROCESS)
        more = [
            self._line(labels, [*values[:-1], process, values[-1]])
            for process, snapshot in others.items()
            for values in snapshot.get(self.name, ())
            if len(values) == len(labels)  # A process of another version may have other labels.
        ]
        return head + own + more

    def _line(self, labels: Labels, values: Sequence[str | int]) -> str:
        """Return the line of one number, which is the last of the values."""
        pairs = (f'{label}="{_escape(str(value))}"' for label, value in zip(labels, values[:-1], strict=True))
        return f"{self.name}{{{','.join(pairs)}}} {values[-1]}"


def _escape(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


db_operations: Final = Counter(
    "a2a_db_operations_total",
    "Operations on the database, by work item and outcome: done, refused, again or failed.",
    ("operation", "outcome"),
)
broker_messages: Final = Counter(
    "a2a_broker_messages_total",
    "Messages over a broker, redis or celery, by outcome: published, received or failed.",
    ("broker", "outcome"),
)
agent_calls: Final = Counter(
    "a2a_agent_calls_total",
    "Calls that send an agent a message, by agent and outcome: answered or failed.",
    ("agent", "outcome"),
)
agent_time: Final = Counter(
    "a2a_agent_call_microseconds_total", "The time of these calls, until their answer or stream ended.", ("agent",)
)
calls: Final = Counter("a2a_calls_total", "Calls in any language, by outcome: answered or failed.", ("outcome",))
tasks: Final = Counter(
    "a2a_tasks_total",
    "Tasks by what became of them in this process: created, completed, failed, canceled or rejected.",
    ("outcome",),
)
ALL: Final = (db_operations, broker_messages, agent_calls, agent_time, calls, tasks)


PROCESS = "process"
"""The label with the name of another process."""


def snapshot() -> Snapshot:
    """Return the numbers of this process."""
    return {counter.name: counter.snapshot() for counter in ALL}


def text(others: Mapping[str, Snapshot]) -> str:
    """Return all counters in the text format of Prometheus: of this process, and of others by their names."""
    return "".join(f"{line}\n" for counter in ALL for line in counter.lines(others))
