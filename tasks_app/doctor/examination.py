"""All examinations, in one order."""

from collections.abc import Callable, Iterator
from itertools import chain

from msgspec import Struct

from tasks_app import clock
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.logs import examine_logs
from tasks_app.doctor.machines import examine_machines
from tasks_app.doctor.work import examine_work


class Examination(Struct):
    """The count of what was examined so far."""

    tasks: int = 0
    """Tasks whose log was folded."""
    findings: int = 0


def examine(
    limit: int | None, examination: Examination, progress: Callable[[Examination], None] = lambda _: None
) -> Iterator[Finding]:
    """Yield what is wrong, counting in the examination. The logs are those of the newest tasks: at most so many, or all
    of them for None. The progress is told after each page of them."""
    now = clock.shared()
    for finding in chain(examine_machines(now), examine_work(now)):
        examination.findings += 1
        yield finding
    for step in examine_logs(limit):
        if isinstance(step, int):
            examination.tasks = step
            progress(examination)
            continue
        examination.findings += 1
        yield step
