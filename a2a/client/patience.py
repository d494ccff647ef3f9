"""The time limits of calls, and the rules of their repetition."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import TypeVar

from msgspec import Struct, field

from a2a.batches import ExecuteBatch
from a2a.client.arguments import check_limits, check_seconds
from a2a.client.clock import SYSTEM, Clock
from a2a.client.errors import ClientError
from a2a.memory import DeleteMemory, StoreMemory
from a2a.requests import Request, SendChunk, SendMessage, SendToSharedStream, StartSharedStream
from a2a.retry_after import read_retry_after
from a2a.workflows import ExecuteWorkflow

Outcome = TypeVar("Outcome")


class Timeouts(Struct, frozen=True, kw_only=True):
    """Time limits in seconds."""

    connect: float = 5.0
    """The limit for a connection."""
    request: float = 30.0
    """The limit for each attempt of a call. Streams have none."""
    silence: float | None = 60.0
    """The limit for a silence of a stream. After it the stream is resumed. None for no limit."""
    methods: Mapping[type[Request], float] = field(default_factory=dict)
    """Limits for single operations in place of `request`, such as {SendMessage: 600}."""

    def __post_init__(self) -> None:
        """Check the types, which asyncio and httpx would refuse in words of their own. Raises TypeError."""
        check_seconds("connect", self.connect)
        check_seconds("request", self.request)
        if self.silence is not None:
            check_seconds("silence", self.silence)
        check_limits(self.methods)

    def of(self, request: type[Request], usual: Mapping[type[Request], float] | None = None) -> float:
        """Return the limit of a call. `usual` are those of its language."""
        return self.methods.get(request) or (usual or {}).get(request, self.request)


class Retries(Struct, frozen=True, kw_only=True):
    """The repetition of calls after faults of connections and transient errors. Pauses grow exponentially."""

    times: int = 3
    """The largest number of repetitions."""
    first: float = 0.1
    """Seconds before the first repetition."""
    factor: float = 2.0
    jitter: float = 0.2
    """The share of a pause that is added or subtracted at random, at most."""
    longest: float = 30.0
    """The longest pause in seconds. If a server asks for a longer one, the call is not repeated."""
    resend: bool = True
    """True to repeat a message that may have arrived, under its id. A server that stores message ids, such as ours,
    accepts it once. False is for other servers: then a message is repeated only if it certainly did not arrive."""
    reconnects: int = 10
    """The largest number of consecutive reconnections without a new event."""

    def pause(self, number: int, clock: Clock = SYSTEM, least: float | None = None) -> float:
        """Return the pause before a repetition in seconds. The first one has number 0. The server may ask for more."""
        plain = min(self.first * self.factor**number, self.longest)
        seconds = plain * (1 + self.jitter * (2 * clock.chance() - 1))
        return max(seconds, least or 0.0)


def is_repeatable(request: Request, messages: bool) -> bool:
    """Return whether it does no harm to repeat a request that a server has processed. `messages` is true if it knows
    messages by their ids."""
    match request:
        case SendMessage():
            return messages
        case SendChunk():
            return True  # Its number is its id.
        case SendToSharedStream() | StartSharedStream(stream_id=None) | ExecuteBatch() | ExecuteWorkflow():
            return False
        case StoreMemory() | DeleteMemory():
            return request.if_version is None  # The first attempt changes the version.
        case _:
            return True


async def repeat(attempt: Callable[[], Awaitable[Outcome]], retries: Retries, clock: Clock, *, safe: bool) -> Outcome:
    """Return the outcome of a call, which is repeated while its errors are retryable.

    `safe` is true if it does no harm to repeat a call that the server has processed. Raises the error of the last
    attempt.
    """
    doubtful = False
    for number in range(retries.times + 1):
        try:
            return await attempt()
        except ClientError as error:
            error.attempts, error.doubtful = number + 1, doubtful
            least = error.retry_after or 0.0
            repeatable = error.retryable and (safe or not error.processed)
            if not repeatable or number == retries.times or least > retries.longest:
                raise
            doubtful = doubtful or error.processed
            pause = retries.pause(number, clock, least)
        await clock.sleep(pause)
    raise AssertionError("the loop ends with an outcome or an error")


def seconds_until(header: str | None, clock: Clock) -> float | None:
    """Return the seconds of a Retry-After header; None without one."""
    wait = read_retry_after(header or "", datetime.fromtimestamp(clock.today(), UTC))
    return None if wait is None else wait.total_seconds()
