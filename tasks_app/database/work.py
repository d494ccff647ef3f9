"""Work items: what is asked of the database. The class of an item says in which lane it is done, and how.

An operation awaits an item and gets its result, typed; its driver (operations/) hands the item to the bridge.
"""

import logging
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from django.db import DatabaseError, InterfaceError
from msgspec import Struct

from tasks_app.database.errors import error_for_callers
from tasks_app.database.locks import is_lock_refusal

log = logging.getLogger(__name__)
R = TypeVar("R")


class Step(Generic[R]):
    """Anything that an operation awaits: the driver of the operation gets it, and sends the result."""

    __slots__ = ()

    def __await__(self) -> Generator["Step[R]", R, R]:
        return (yield self)


class NotDone(Struct, frozen=True):
    """The result of an item of which nothing was done: it is asked for again, at once."""


class Locked(NotDone, frozen=True):
    """Another transaction holds a row that the item needs: it is asked for again after a pause."""


LOCKED = Locked()


class Elsewhere(NotDone, frozen=True):
    """The item takes too long beside others: another is done instead of it, in another lane."""

    instead: "Work[Any]"


GroupResult: TypeAlias = R | NotDone | Exception
"""The result of an item in a group: an item that fails has its exception as its result."""


class ItemRefused(Exception):
    """An item is refused, for which its group is not to blame: the other items are tried without it."""


class Work(Step[R], Generic[R]):
    """A work item, mixed with Struct. Items of one class are done together, in the lane of the class."""

    __slots__ = ()

    lane: ClassVar[str]
    """The lane that does the items."""
    repeatable: ClassVar[bool] = False
    """Doing it twice does no harm, should it not be known whether it was done."""
    patient: ClassVar[bool] = False
    """Its caller waits for as long as it takes: the result must be heard."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> Sequence[GroupResult[R]]:
        """Do the items of a group; return their results in order."""
        raise NotImplementedError

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[R]]) -> None:
        """Pass on what was done; called on the lane, after the commit."""

    def unique(self) -> Hashable:
        """Return what no other item of a group may return: a statement that changes a row twice loses one change.
        Classes whose items go with any others do not define it."""
        return id(self)

    def lighten(self) -> bool:
        """Take out of a refused item what is not its purpose, for another try; tell whether there was anything."""
        return False


class Do(Work[R], Struct, Generic[R], frozen=True):
    """Any synchronous function. It has a connection, but no group. When a lock is refused to it, it is done again: it
    is a transaction, or may be done twice."""

    lane = "write"

    function: Callable[[], R]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[R]]:
        """Do each for itself: what the others did is done, and is not to be done again."""
        return [_result(item.function, cls) for item in items]


def _result(function: Callable[[], R], kind: type[Do[Any]]) -> GroupResult[R]:
    try:
        return function()
    except Exception as error:  # noqa: BLE001  # it is the answer to whoever asked for this one
        if is_lock_refusal(error):
            return LOCKED
        if isinstance(error, DatabaseError | InterfaceError):
            log.warning("a %s failed: %s", kind.__name__, error)
        return error_for_callers(error)


class DoSlowly(Do[R], Generic[R], frozen=True):
    """A function that only reads and may take long. Owners take turns; a read without an owner waits for no turn."""

    lane = "slow"

    owner: int | None = None


class DoAlone(DoSlowly[R], Generic[R], frozen=True):
    """A read of something large. There is one at a time, for each takes memory and the interpreter from all others."""

    lane = "large"


class DoApart(Do[R], Generic[R], frozen=True):
    """A function of the service itself, such as readiness: it waits for no caller's work."""

    lane = "health"
