"""Work of Python that takes long enough to be noticed by others: done in threads of its own, off the event loop."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")

LARGE = 16_384
"""Bytes above which JSON is read, understood and redacted off the loop."""
_threads = ThreadPoolExecutor(2, thread_name_prefix="large")
"""Not asyncio's own: agents may block those."""


async def off_loop(function: Callable[..., T], *arguments: object) -> T:
    """Return what the function returns, or raise what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_threads, function, *arguments)
