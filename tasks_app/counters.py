"""Counters of what this process does, for `GET /metrics`. Their names and labels are an interface to operators."""

import threading
from typing import Final

Labels = tuple[str, ...]


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

    def lines(self) -> list[str]:
        """Return the counter in the text format of Prometheus."""
        head = [f"# HELP {self.name} {self.about}", f"# TYPE {self.name} counter"]
        return head + [
            f"{self.name}{{{self._pairs(values)}}} {count}" for values, count in sorted(self.total().items())
        ]

    def _pairs(self, values: Labels) -> str:
        return ",".join(f'{label}="{_escape(value)}"' for label, value in zip(self.labels, values, strict=True))


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
ALL: Final = (db_operations, broker_messages, agent_calls, agent_time)


def text() -> str:
    """Return all counters in the text format of Prometheus."""
    return "".join(f"{line}\n" for counter in ALL for line in counter.lines())
