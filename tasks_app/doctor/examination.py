"""The whole examination: processes, disks, then work of each kind, budgets, permissions, keys, secrets, the memory,
files, and event logs."""

from collections.abc import Callable, Iterator

from msgspec import Struct

from tasks_app import clock
from tasks_app.doctor.batches import examine_batches
from tasks_app.doctor.budgets import examine_budgets
from tasks_app.doctor.disks import examine_disks
from tasks_app.doctor.files import examine_files
from tasks_app.doctor.finding import Finding
from tasks_app.doctor.guard import guard
from tasks_app.doctor.keys import examine_keys
from tasks_app.doctor.logs import examine_logs
from tasks_app.doctor.memory import examine_memory
from tasks_app.doctor.processes import examine_processes
from tasks_app.doctor.rules import examine_rules
from tasks_app.doctor.secrets import examine_secrets
from tasks_app.doctor.shared_streams import examine_shared_streams
from tasks_app.doctor.work import examine_work
from tasks_app.doctor.workflows import examine_workflows

PARTS = {
    "processes": examine_processes,
    "disks": examine_disks,
    "work": examine_work,
    "workflows": examine_workflows,
    "batches": examine_batches,
    "shared streams": examine_shared_streams,
    "budgets": examine_budgets,
    "permissions": examine_rules,
    "keys": examine_keys,
    "secrets": examine_secrets,
}
"""The parts that take the time, because most of them look at rows which are overdue."""


class Examination(Struct):
    """The progress of an examination."""

    tasks: int = 0
    """Tasks whose log has been examined."""
    findings: int = 0


def examine(
    limit: int | None, examination: Examination, progress: Callable[[Examination], None] = lambda _: None
) -> Iterator[Finding]:
    """Yield findings, and count them in the examination.

    The limit is the number of newest tasks whose logs are examined, of newest owners whose memory is, and of newest
    files that are looked for; None is all.
    `progress` is called after each page of tasks.
    """
    now = clock.shared()
    parts = {name: examine_part(now) for name, examine_part in PARTS.items()}
    parts |= {"the memory": examine_memory(limit), "files": examine_files(limit)}
    for name, findings in parts.items():
        for finding in guard(findings, name):
            examination.findings += 1
            yield finding
    for step in guard(examine_logs(limit), "logs"):
        if isinstance(step, int):
            examination.tasks = step
            progress(examination)
            continue
        examination.findings += 1
        yield step
