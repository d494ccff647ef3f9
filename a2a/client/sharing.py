"""Work that several calls need at the same time, and that one of them does for all."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import copy


class SharedWork:
    """Work of which one attempt is under way at a time. The calls that wait for an attempt share its error.

    If each of them tried again by itself, the last of many calls to a silent server would wait for as many timeouts.
    """

    def __init__(self) -> None:
        self._lock = asyncio.Lock()
        self._failures = 0
        self._error: Exception | None = None
        """The error of the last attempt that failed."""

    @asynccontextmanager
    async def attempt(self) -> AsyncIterator[None]:
        """Enter the block alone. Raises the error of an attempt that failed while this call waited for it."""
        failures = self._failures
        async with self._lock:
            if self._error is not None and self._failures > failures:
                raise copy(self._error)  # Each call notes its own attempts in its error.
            try:
                yield
            except Exception as error:
                self._failures, self._error = self._failures + 1, copy(error)
                raise
