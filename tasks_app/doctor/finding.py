"""The result of an examination: one finding for each thing that is wrong."""

from msgspec import Struct

REPORT = "Keep a copy of the database and report it: only a fault of the server or of the storage does this."
"""Advice about rows that contradict each other."""
SWEEPER = "Start a server or a worker. If one runs, its sweeper does not work: see /readyz and its log."
"""Advice about rows that a sweep should have changed."""


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what to do about it."""

    kind: str
    """The kind of fault: `log`, `lease`, `task`, `delivery`, `slack`, `workflow`, `batch`, `stream`, `budget`,
    `permission`, `key`, `secret`, `memory`, `file`, `disk`, `clock`, `retention` or `process`, or `doctor` for an
    examination that failed."""
    subject: str
    """The id of the task, webhook, workflow, batch, shared stream, budget, tenant, principal, key, owner, file or
    process, the folder of the disk, or what was examined."""
    problem: str
    remedy: str
