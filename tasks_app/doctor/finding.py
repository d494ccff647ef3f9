"""A finding of an examination."""

from msgspec import Struct


class Finding(Struct, frozen=True, kw_only=True):
    """One thing that is wrong, and what to do about it."""

    kind: str
    """The examination that found it, such as `log` or `lease`."""
    subject: str
    """The id of the task, webhook or process."""
    problem: str
    remedy: str
