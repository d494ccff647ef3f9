"""A stream that survives its connections. It resumes after its last event, and yields each event once.

A server with event ids continues after the last id. A server without ids begins each stream with a snapshot, which is
compared with the task so far; the stream yields the difference.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from a2a.client.bodies import STALE, check_use
from a2a.client.clock import Clock
from a2a.client.errors import (
    ClientError,
    ConnectionLost,
    ServerError,
    StreamLost,
    Timeout,
    VersionNotSupported,
)
from a2a.client.link import Link
from a2a.client.memory import Memory
from a2a.client.patience import Retries
from a2a.client.updates import Update
from a2a.requests import GetTask, StreamMessage, SubscribeToTask
from a2a.states import INTERRUPTED, TERMINAL
from a2a.types import Message, Task

Listening = StreamMessage | SubscribeToTask


class Stream:
    """The updates of a task, as an asynchronous iterator. Use it with `async with` if you leave it before its end."""

    def __init__(
        self,
        link: Callable[[], Awaitable[Link]],
        fall_back: Callable[[Link], bool],
        request: Listening,
        retries: Retries,
        clock: Clock,
        task: Task | None = None,
    ) -> None:
        self._link = link
        self._fall_back = fall_back
        """Changes to an older version, and returns whether there is one."""
        self._used: Link | None = None
        """The link of the last connection."""
        self._request = request
        self._retries = retries
        self._clock = clock
        self._memory = Memory(None if request.after is None else str(request.after), task)
        self._updates = self._follow()
        self._question_ends = isinstance(request, StreamMessage)
        self._frames = 0
        """The number of events on this connection."""
        self._pause = 0.0
        """The pause between two connections that the server requests, in seconds. The longest pause limits it."""

    @property
    def task(self) -> Task | None:
        """The task as of the last update; None before the first, and for a direct reply."""
        return self._memory.task

    @property
    def last_id(self) -> str | None:
        """The id of the last event, from which another stream can resume later."""
        return self._memory.last_id

    def __aiter__(self) -> AsyncIterator[Update]:
        return self._updates

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Leave the stream. The task continues."""
        await self._updates.aclose()

    # ------------------------------------------------------------- connections

    async def _follow(self) -> AsyncGenerator[Update, None]:
        # Finding the agent has its own repetitions.
        await self._link()
        fruitless = 0
        while True:
            lost = None
            connection = self._connection()
            try:
                async for update in connection:
                    fruitless = 0
                    yield update
                    if update.ends:
                        return
            except ClientError as error:
                lost = error
            finally:
                await connection.aclose()
            if lost is None and self._is_over():
                return
            if (last := await self._end_behind(lost, fruitless)) is not None:
                for update in last:
                    yield update
                return
            if not (isinstance(lost, Timeout) and self._frames):
                # A quiet stream is no failure: its task takes long.
                fruitless += 1
            if not self._goes_on(lost, fruitless):
                return
            pause = max(min(self._pause, self._retries.longest), (lost and lost.retry_after) or 0.0)
            await self._clock.sleep(self._retries.pause(max(fruitless - 1, 0), self._clock, pause))

    async def _connection(self) -> AsyncGenerator[Update, None]:
        """Yield the new updates of one connection. Raises ClientError."""
        self._frames = 0
        link = self._used = await self._link()
        self._question_ends = self._question_ends or link.language.question_ends
        again = self._memory.update is not None
        async with link.listen(self._wish(), self._memory.last_id) as updates:
            if again and self._memory.last_id is None and not link.language.begins_with_task:
                async for update in self._missed(link):
                    yield update
            stale = 0
            async for update, self._pause in updates:
                self._frames += 1
                stale += 1
                check_use(stale, STALE, link.interface.url)
                if update.ends and self._memory.has_gap:
                    # Pieces around a gap may be missing or doubled. The task as it is settles it.
                    with suppress(ClientError):
                        async for late in self._missed(link):
                            yield late
                for new in self._memory.take(update, first=again and self._frames == 1):
                    stale = 0
                    yield new

    def _wish(self) -> Listening:
        """Return the request of the next connection: a subscription, if the task is known."""
        update = self._memory.update
        if update is None or isinstance(update.event, Message):
            return self._request
        return SubscribeToTask(id=update.task_id, tenant=self._request.tenant)

    async def _missed(self, link: Link) -> AsyncGenerator[Update, None]:
        """Yield the updates that the current task adds to the stream so far."""
        if self._memory.update is not None:
            task = await link.ask(GetTask(id=self._memory.update.task_id, tenant=self._request.tenant))
            snapshot = Update(event=task, task_id=task.id, context_id=task.context_id)
            for update in self._memory.take(snapshot, first=False):
                yield update

    # --------------------------------------------------------------------- end

    def _is_over(self) -> bool:
        """Return whether a stream that the server has closed was complete."""
        update = self._memory.update
        if update is None:
            return False
        if isinstance(update.event, Message) or update.final or self._memory.state in TERMINAL:
            return True
        return self._question_ends and self._memory.state in INTERRUPTED

    async def _end_behind(self, lost: ClientError | None, fruitless: int) -> list[Update] | None:
        """Return the last updates if a server does not continue because the task has ended, else None."""
        refused = isinstance(lost, ServerError) and lost.processed
        # Some servers break off or close a stream instead of refusing it. One look is enough to know.
        broken = (lost is None or isinstance(lost, ConnectionLost)) and fruitless == 2
        if self._frames or self._memory.update is None or not (refused or broken):
            return None
        try:
            updates = [update async for update in self._missed(await self._link())]
        except ClientError:
            return None
        return updates if self._memory.state in TERMINAL else None

    def _goes_on(self, lost: ClientError | None, fruitless: int) -> bool:
        """Return whether to connect again. False ends the stream without an error. Raises the error, or StreamLost."""
        if self._memory.update is None:
            return self._opens_again(lost, fruitless)
        if self._used is not None and SubscribeToTask not in self._used.language.operations:
            # Nothing leads back to a stream that names no task.
            raise lost or StreamLost("the stream ended before its task")
        if lost is not None and not (lost.retryable and (lost.retry_after or 0.0) <= self._retries.longest):
            raise lost
        if fruitless <= self._retries.reconnects:
            return True
        if lost is None and self._memory.state in INTERRUPTED:
            # The server closes each stream of an interrupted task.
            return False
        why = f": {lost.what}" if lost else ""
        last = f"after the event {self.last_id}" if self.last_id else "without ids"
        error = StreamLost(f"the stream broke and {fruitless - 1} reconnections brought nothing new, {last}{why}")
        raise error from lost

    def _opens_again(self, lost: ClientError | None, attempts: int) -> bool:
        """Return whether to connect again for the first event, by the rules of any other call. Raises the error."""
        if isinstance(lost, VersionNotSupported) and self._used and self._fall_back(self._used):
            return True
        error = lost or StreamLost("the stream ended before its first event")
        error.attempts = attempts
        safe = self._retries.resend or isinstance(self._request, SubscribeToTask)
        repeatable = lost is None or (lost.retryable and (lost.retry_after or 0.0) <= self._retries.longest)
        if attempts > self._retries.times or not repeatable or not (safe or not error.processed):
            raise error
        return True
