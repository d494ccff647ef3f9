"""The files of a message: its large parts are stored apart, and the message refers to them."""

import hashlib
import logging

from msgspec.structs import replace

from a2a.errors import InvalidParams, Unavailable
from a2a.files import SCHEME
from a2a.types import Message, Part
from tasks_app.files import StoredParts, TooLarge, deletion_of, has_large, storing_of
from tasks_app.operations.plan import Plan

log = logging.getLogger(__name__)


def check_references(message: Message) -> None:
    """Check that no part refers to a stored file, because only the server makes such references.

    Raises InvalidParams.
    """
    for place, part in enumerate(message.parts):
        if part.url is not None and part.url.startswith(SCHEME):
            raise InvalidParams((f"message.parts[{place}]", f"must not be a {SCHEME} URL: these are the server's own"))


def with_digests(message: Message) -> Message:
    """Return the message with digests in place of the bytes of its files."""
    return replace(message, parts=tuple(_with_digest(part) for part in message.parts))


def _with_digest(part: Part) -> Part:
    if part.raw is None:
        return part
    return replace(part, raw=None, url=f"sha256:{hashlib.sha256(part.raw).hexdigest()}")


async def store_files(plan: Plan) -> None:
    """Store the large parts of the message that begins a conversation, and put references to them into the plan.

    Raises InvalidParams and Unavailable.
    """
    storage = await store_parts(plan.request.message)
    plan.files = list(storage.rows)
    plan.request = replace(plan.request, message=replace(plan.request.message, parts=storage.parts))
    plan.run.message = replace(plan.run.message, parts=storage.parts)
    plan.run.history = (plan.run.message,)


async def store_parts(message: Message, task_id: str = "") -> StoredParts:
    """Store the large parts of a message; return its parts with references to them, and the rows of the files.

    Raises InvalidParams for more than a task may store, and Unavailable if the storage fails.
    """
    if not has_large(message.parts):
        return StoredParts(message.parts, [])
    try:
        return await storing_of(message.parts, task_id)
    except TooLarge as error:
        raise InvalidParams((f"message.parts[{error.place}]", error.sentence)) from None
    except Exception as error:  # an operator chooses the storage, and it may raise anything
        log.exception("a file could not be stored")
        raise Unavailable from error


class Attachments:
    """The files of one message to a task, stored once, however often the message is tried."""

    def __init__(self) -> None:
        self.storage: StoredParts | None = None

    async def store(self, message: Message, task_id: str) -> StoredParts:
        """Store the large parts, as store_parts() does, unless they are stored."""
        self.storage = self.storage or await store_parts(message, task_id)
        return self.storage

    async def drop(self) -> None:
        """Delete the files, because no task has the message, or it was sent before."""
        if self.storage is not None and self.storage.rows:
            await deletion_of(self.storage.rows)
