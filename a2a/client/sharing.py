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
                raise _copy(self._error)
            try:
                yield
            except Exception as error:
                self._failures, self._error = self._failures + 1, _copy(error)
                raise


def _copy(error: Exception) -> Exception:
    """Return a copy, because each call notes its own attempts in its error; or the error itself, if it has no copy."""
    try:
        return copy(error)
    except Exception:  # noqa: BLE001  # the credentials may be the user's, and raise errors of any class
        return error
