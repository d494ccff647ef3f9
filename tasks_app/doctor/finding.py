"""The result of an examination: one finding for each thing that is wrong."""

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what to do about it."""

    kind: str
    """The kind of fault: `log`, `lease`, `task`, `delivery`, `slack`, `workflow`, `batch`, `stream`, `budget`,
    `permission`, `key`, `memory`, `clock`, `retention` or `process`, or `doctor` for an examination that failed."""
    subject: str
    """The id of the task, webhook, workflow, batch, shared stream, budget, tenant, principal, key, owner or process,
    or what was examined."""
    problem: str
    remedy: str
