"""The parts of an operation that take long for a large message."""

from collections.abc import Callable
from typing import TypeVar

from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations.operation import Await, Context

T = TypeVar("T")


async def compute(context: Context, function: Callable[..., T], *arguments: object) -> T:
    """Return the result of a function that encodes the message of the call. For a large one it runs off the loop."""
    if context.exchange.request_bytes <= LARGE:
        return function(*arguments)
    work: Await[T] = Await(lambda: off_loop(function, *arguments))
    return await work
