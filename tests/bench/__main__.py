"""``python -m tests.bench``: measures, prints a table for each shape, and fails if the rows are not the answers."""

import argparse
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.bench import load, report
from tests.bench.load import LoadFailed
from tests.bench.processes import BenchError, cores
from tests.bench.report import Result
from tests.bench.scenarios import SCENARIOS, Scenario, warm_up
from tests.bench.shapes import SHAPES, Deployment, Shape, deployed, pinning
from tests.support.servers import Unavailable

NO_WRK = (
    "The load comes from wrk, and it is not installed: apt install wrk, brew install wrk, or from your system's "
    "packages. Without it: --only streams sse sockets."
)
LESS = "on a machine that others use too, differences under a quarter mean nothing"


def parser() -> argparse.ArgumentParser:
    about = "\n".join(
        [
            "Measures Taskdesk, alone and in its production shape, and starts all it needs. Scenarios:",
            *(f"  {name:12}{scenario.about}" for name, scenario in SCENARIOS.items()),
            "Shapes:",
            *(f"  {name:12}{shape.title}" for name, shape in SHAPES.items()),
        ]
    )
    made = argparse.ArgumentParser("python -m tests.bench", None, about, formatter_class=argparse.RawTextHelpFormatter)
    made.add_argument("--only", nargs="+", choices=SCENARIOS, default=list(SCENARIOS), metavar="NAME", help="scenarios")
    made.add_argument("--shape", nargs="+", choices=SHAPES, default=list(SHAPES), metavar="NAME", help="shapes")
    made.add_argument("--seconds", type=number(float, "a number", 0.01, 3600), default=1.5, help="of each load (1.5)")
    made.add_argument("--rounds", type=number(int, "a whole number", 1, 100), default=3, help="the median counts (3)")
    made.add_argument("--json", type=writable, metavar="FILE", help="everything, for programs")
    return made


def number(kind: Callable[[str], float], words: str, least: float, most: float) -> Callable[[str], float]:
    """Return a parser of numbers that are refused in our words."""

    def parse(text: str) -> float:
        try:
            value = kind(text)
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"must be {words} from {least:g} to {most:g}, not {text!r}")
        return value

    return parse


def writable(text: str) -> Path:
    """Return the file, made now: three minutes later would be late to say that it cannot be."""
    path = Path(text)
    try:
        path.write_bytes(b"")
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {text}: {error.strerror}") from None
    return path


def measure(shape: Shape, scenarios: dict[str, Scenario], rounds: int, seconds: float) -> Result:
    """Measure one shape, on one deployment of it."""
    result = Result(shape.title, str(pinning(shape, cores())))
    tell(f"{shape.title}: starting")
    with deployed(shape) as deployment:
        if any(scenario.wrk for scenario in scenarios.values()):
            warm_up(deployment)
        for number in range(1, rounds + 1):
            for name, scenario in scenarios.items():
                if not scenario.fresh:
                    one(result, deployment, scenario, f"round {number} of {rounds}, {name}", seconds)
        for name, scenario in scenarios.items():
            if scenario.postgres and not shape.postgres:
                tell(f"{name}: needs PostgreSQL")
            elif scenario.fresh:
                deployment.stop()
                deployment.start(**scenario.settings)
                one(result, deployment, scenario, f"once, {name}", seconds)
        result.states, result.answers = deployment.settled(), deployment.answers
    return result


def one(result: Result, deployment: Deployment, scenario: Scenario, words: str, seconds: float) -> None:
    """One scenario in one round, with a line about it."""
    try:
        lines = list(scenario.measure(deployment, seconds))
    finally:
        deployment.check()  # A dead process explains the failed scenario.
    result.rounds += lines
    first = lines[0].values
    seen = [f"{report.COLUMNS[name]} {report.written(first[name])}" for name in report.names(lines[:1])][:3]
    errors = sum(line.errors for line in lines)
    tell(f"{words}: {', '.join(seen)}{f', {errors} ERRORS' if errors else ''}")


def given() -> list[str]:
    """Return the servers that are not started here, and so run on whatever cores they like."""
    names = ("TEST_DATABASE_URL", "TEST_REDIS_URL")
    return [f"the server of {name}, not pinned" for name in names if os.environ.get(name)]


def tell(words: str) -> None:
    """Print progress, apart from the tables, which are on standard output."""
    sys.stderr.write(f"{time.strftime('%H:%M:%S')} {words}\n")
    sys.stderr.flush()


def told_to_stop() -> list[int]:
    """Turn SIGTERM into a KeyboardInterrupt, as SIGINT is, and note it in this list."""
    orders: list[int] = []

    def leave(number: int, _frame: object) -> None:
        orders.append(number)
        # asyncio ends a loop cleanly for SIGINT with Python's own handler.
        signal.raise_signal(signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # The parent may have set another handler.
    signal.signal(signal.SIGTERM, leave)
    return orders


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: 0 if every call was answered and every answer is a row."""
    options = parser().parse_args(arguments)
    scenarios = {name: SCENARIOS[name] for name in dict.fromkeys(options.only)}
    if not load.has_wrk() and any(scenario.wrk for scenario in scenarios.values()):
        sys.exit(NO_WRK)
    machine = ", ".join([f"{os.cpu_count()} cores", f"Python {platform.python_version()}", *given()])
    way = f"{options.rounds} rounds of {options.seconds:g} s: median (least-most); {LESS}"
    results: list[Result] = []
    orders = told_to_stop()
    try:
        for name in dict.fromkeys(options.shape):
            results.append(result := measure(SHAPES[name], scenarios, options.rounds, options.seconds))
            sys.stdout.write(f"\n{report.table(result)}\n\n")
            sys.stdout.flush()
    except (BenchError, LoadFailed, Unavailable) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        tell("stopped, with all that was started")
        return 128 + (orders or [signal.SIGINT])[0]
    sys.stdout.write(f"{machine}; {way}.\n")
    if options.json:
        about = {"machine": machine, "rounds": options.rounds, "seconds": options.seconds}
        report.write(options.json, about, results)
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
