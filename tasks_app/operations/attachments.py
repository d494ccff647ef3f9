"""The files of a message on their way into the storage: what is large is kept there, and the message refers to it."""

import hashlib
import logging

from msgspec.structs import replace

from a2a.errors import InvalidParams, Unavailable
from a2a.files import SCHEME
from a2a.types import Message, Part
from tasks_app.files import StoredParts, TooLarge, deletion_of, has_large, storing_of
from tasks_app.operations.creation import Plan

log = logging.getLogger(__name__)


def check_references(message: Message) -> None:
    """Raises InvalidParams for a part that names a file of ours: only what we make refers to files."""
    for place, part in enumerate(message.parts):
        if part.url is not None and part.url.startswith(SCHEME):
            raise InvalidParams((f"message.parts[{place}]", f"must not be a {SCHEME} URL: these are the server's own"))


def digested(message: Message) -> Message:
    """The message with the digests of its files in their place."""
    return replace(message, parts=tuple(_digested(part) for part in message.parts))


def _digested(part: Part) -> Part:
    if part.raw is None:
        return part
    return replace(part, raw=None, url=f"sha256:{hashlib.sha256(part.raw).hexdigest()}")


def keep_files(plan: Plan):  # type: ignore[no-untyped-def]  # a part of a generator
    """Stores the large parts of the message that begins a conversation; from here on it refers to them."""
    kept: StoredParts = yield from kept_of(plan.request.message)
    plan.files = list(kept.rows)
    plan.request = replace(plan.request, message=replace(plan.request.message, parts=kept.parts))
    plan.run.message = replace(plan.run.message, parts=kept.parts)
    plan.run.history = (plan.run.message,)


def kept_of(message: Message, task_id: str = ""):  # type: ignore[no-untyped-def]  # a part of a generator
    """The parts as they are to be stored. Raises InvalidParams for more than may be kept, Unavailable if the storage
    does not take it."""
    if not has_large(message.parts):
        return StoredParts(message.parts, [])
    try:
        return (yield storing_of(message.parts, task_id))
    except TooLarge as error:
        raise InvalidParams((f"message.parts[{error.place}]", error.sentence)) from None
    except Exception as error:  # a storage of anybody's may raise anything
        log.exception("a file could not be stored")
        raise Unavailable from error


def drop(kept: StoredParts | None):  # type: ignore[no-untyped-def]  # a part of a generator
    """The message was known: what was stored for it is not needed."""
    if kept is not None and kept.rows:
        yield deletion_of(kept.rows)
