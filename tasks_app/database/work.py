"""Work items: pieces of database work. The class of an item says in which lane it is done, and how.

An operation awaits an item and gets its typed result. The dispatcher of operations hands the item to the bridge.
"""

import logging
from collections.abc import Callable, Generator, Hashable, Sequence
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from django.db import DatabaseError, InterfaceError
from msgspec import Struct

from tasks_app.database.errors import error_for_callers
from tasks_app.database.locks import is_lock_refusal
from tasks_app.off_loop import large_work

log = logging.getLogger(__name__)
R = TypeVar("R")


class Step(Generic[R]):
    """Anything that an operation awaits. The dispatcher gets it, and sends back the result."""

    __slots__ = ()

    def __await__(self) -> Generator["Step[R]", R, R]:
        return (yield self)


class NotDone(Struct, frozen=True):
    """The result of an item that was not begun. The bridge repeats the item at once."""


class Locked(NotDone, frozen=True):
    """The result of an item that needs a row which another transaction has locked. The bridge repeats it after a
    pause."""


LOCKED = Locked()


class Elsewhere(NotDone, frozen=True):
    """The result of an item that would delay others. The bridge does another item in its place, in another lane."""

    instead: "Work[Any]"


GroupResult: TypeAlias = R | NotDone | Exception
"""The result of an item in a group. The result of a failed item is its exception."""


class ItemRefused(Exception):
    """An item is refused on its own account: the other items of its group are done without it."""


class Work(Step[R], Generic[R]):
    """A work item; subclasses are Structs too. Items of one class are done together, in the lane of the class."""

    __slots__ = ()

    lane: ClassVar[str]
    """The lane that does the items."""
    repeatable: ClassVar[bool] = False
    """True if doing it twice does no harm, so that it may be repeated after an uncertain result."""
    patient: ClassVar[bool] = False
    """True if its caller must get the result, however long that takes."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> Sequence[GroupResult[R]]:
        """Do the items of a group; return their results in order."""
        raise NotImplementedError

    @classmethod
    def after_commit(cls, items: Sequence[Self], results: Sequence[GroupResult[R]]) -> None:
        """Notify others of the results. Called on the lane, after the commit."""

    def unique(self) -> Hashable:
        """Return a key that no two items of a group may share: a statement that changes a row twice loses one change.
        Classes whose items go with any others do not define this."""
        return id(self)

    def lighten(self) -> bool:
        """Drop the dispensable part of a refused item, so that it can be repeated. Return whether there was one."""
        return False


class Do(Work[R], Struct, Generic[R], frozen=True):
    """A synchronous function as a work item. It has a connection, but shares no statement with others. It is repeated
    after a refused lock, so it must be one transaction, or harmless to repeat."""

    lane = "write"

    function: Callable[[], R]

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[R]]:
        """Call each function for itself: an error of one must not repeat the others."""
        return [_result(item.function, cls) for item in items]


def _result(function: Callable[[], R], kind: type[Do[Any]]) -> GroupResult[R]:
    try:
        return function()
    except Exception as error:  # noqa: BLE001  # it is the result of this item
        if is_lock_refusal(error):
            return LOCKED
        if isinstance(error, DatabaseError | InterfaceError):
            log.warning("a %s failed: %s", kind.__name__, error)
        return error_for_callers(error)


class DoSlowly(Do[R], Generic[R], frozen=True):
    """A function that only reads, and may take long. Owners take turns. A read without an owner waits for no turn."""

    lane = "slow"

    owner: int | None = None
    key: Hashable = None
    """A value that is equal for reads of an owner whose result is the same. Those that wait together are done once. A
    read that has begun takes in no other: it may miss what the other's caller has stored since."""

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[R]]:
        """Do the reads of one owner and key once."""
        results: dict[Hashable, GroupResult[R]] = {}
        names: list[Hashable] = [id(item) if item.key is None else (item.owner, item.key) for item in items]
        for name, item in zip(names, items, strict=True):
            if name not in results:
                results[name] = _result(item.function, cls)
        return [results[name] for name in names]


class DoOwed(DoSlowly[R], Generic[R], frozen=True):
    """A read for the answer to a change that is stored. It takes the turn of its owner, and no limit refuses it."""

    patient = True


class DoAlone(DoSlowly[R], Generic[R], frozen=True):
    """A large read. There is one at a time, because each takes memory, and the interpreter from all other work."""

    lane = "large"

    @classmethod
    def do_many(cls, items: Sequence[Self]) -> list[GroupResult[R]]:
        """Do the items in turn with other large work."""
        with large_work():
            return super().do_many(items)


class DoApart(Do[R], Generic[R], frozen=True):
    """A function of the service itself, such as a readiness check, which waits for no caller's work."""

    lane = "health"
