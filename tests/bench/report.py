"""Results: the medians of the rounds, with the least and the most, as a table and as JSON."""

import statistics
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from tests.bench.load import Line

COLUMNS = {
    "per_second": "a second",
    "p50_ms": "p50 ms",
    "p95_ms": "p95 ms",
    "p99_ms": "p99 ms",
    "ratio": "ratio",
    "cpu_ms": "cpu ms",
    "cpu_ratio": "cpu ratio",
    "added_ms": "added p95 ms",
    "at_once": "at once",
    "serve_mib": "web MiB",
    "serve_cpu": "web cores",
    "worker_mib": "worker MiB",
    "worker_cpu": "worker cores",
    "machine_cpu": "all cores",
}

SPREAD = {"per_second", "p50_ms", "p95_ms", "p99_ms", "ratio", "cpu_ms", "cpu_ratio"}
"""Columns that show the least and the most, too."""


class Spread(NamedTuple):
    """Spread of one number over the rounds."""

    median: float
    least: float
    most: float

    def __str__(self) -> str:
        if self.least == self.most:
            return written(self.median)
        return f"{written(self.median)} ({written(self.least)}-{written(self.most)})"


@dataclass
class Result:
    """Results of one shape."""

    shape: str
    pinned: str
    rounds: list[Line] = field(default_factory=list)
    answers: int = 0
    """The number of calls that made a task."""
    states: dict[str, int] = field(default_factory=dict)
    """The tasks in the database at the end, by state."""

    @property
    def equal(self) -> bool:
        """Every answer has its task, every task its answer, and all are completed."""
        return self.states == ({"completed": self.answers} if self.answers else {})

    @property
    def errors(self) -> int:
        return sum(line.errors for line in self.rounds)

    @property
    def good(self) -> bool:
        return self.equal and not self.errors

    def spreads(self) -> dict[str, dict[str, Spread]]:
        """By the line's label, then by the number's name."""
        return {
            label: {name: spread(line.values[name] for line in lines if name in line.values) for name in names(lines)}
            for label, lines in self.labelled().items()
        }

    def labelled(self) -> dict[str, list[Line]]:
        """Return the lines of all rounds by label, in the order in which they first came."""
        found: dict[str, list[Line]] = {}
        for line in self.rounds:
            found.setdefault(line.label, []).append(line)
        return found

    def as_json(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "rounds": [line._asdict() for line in self.rounds],
            "spreads": {
                label: {name: of._asdict() for name, of in found.items()} for label, found in self.spreads().items()
            },
            "equal": self.equal,
            "errors": self.errors,
        }


def names(lines: Iterable[Line]) -> list[str]:
    """Return the numbers that any of the lines has, in the order of the columns; 0 is what the system does not tell."""
    there = {name for line in lines for name, value in line.values.items() if value}
    return [name for name in COLUMNS if name in there]


def spread(values: Iterable[float]) -> Spread:
    found = list(values)
    return Spread(statistics.median(found), min(found), max(found))


def written(value: float) -> str:
    """Three digits that count: more than that a shared machine does not tell."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def table(result: Result) -> str:
    """Return the table of a shape, and whether its rows equal its answers."""
    used = names(result.rounds)
    rows = [["", *(COLUMNS[name] for name in used), "errors"]]
    for label, found in result.spreads().items():
        errors = sum(line.errors for line in result.labelled()[label])
        rows.append([label, *(cell(name, found.get(name)) for name in used), str(errors)])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
    return "\n".join([f"{result.shape} ({result.pinned})", "", *lines, "", *remarks(result)])


def cell(name: str, found: Spread | None) -> str:
    """Return a number in the table."""
    if found is None:
        return ""
    return str(found) if name in SPREAD else written(found.median)


def remarks(result: Result) -> list[str]:
    """Return the rows next to the answers, and the first wrong answer of each kind of call."""
    states = ", ".join(f"{count:,} {state}" for state, count in sorted(result.states.items())) or "none"
    verdict = "equal" if result.equal else "NOT EQUAL"
    wrong = {line.label: line.example for line in reversed(result.rounds) if line.errors}
    return [
        f"tasks in the database: {states}; answers: {result.answers:,}; {verdict}",
        *(f"error of {label}: {example or 'not told'}" for label, example in wrong.items()),
    ]


def write(path: Path, about: dict[str, Any], results: Iterable[Result]) -> None:
    """All that was measured, for programs."""
    document = about | {"results": [result.as_json() for result in results]}
    path.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
