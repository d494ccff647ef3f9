"""Batches: one operation, done to many tasks. Each item of a batch becomes a task of its own."""

from typing import ClassVar, Literal

from msgspec import Struct

from a2a.requests import Request
from a2a.types import Json, Message

Optimization = Literal["performance", "resources"]
"""The order in which a batch begins its items. With `performance` the next ones begin as soon as there are places; with
`resources` the next group begins when the last one has ended, behind all other tasks of the owner."""


class BatchInput(Struct, frozen=True, kw_only=True):
    """An item of a batch: a task of the caller that the operation is done to, or a message."""

    task_id: str | None = None
    message: Message | None = None


class ExecuteBatch(Request, frozen=True, kw_only=True):
    """Do one operation to many tasks. The operation is an agent, or a skill of one, and each item becomes a task of its
    own. The answer is the task of the batch, which shows the progress and then has the results in the order of the
    items. It can be followed, canceled and given webhooks as any other task.
    """

    changes: ClassVar[bool] = True

    operation: str
    """The name of an agent, or the id of a skill."""
    items: tuple[BatchInput, ...]
    max_concurrent: int | None = None
    """The most items at work at the same time; None for ten, or for the limit of the server if that is lower."""
    batch_size: int | None = None
    """The items that begin together, at most; None as above."""
    optimization: Optimization = "performance"
    metadata: Json | None = None
