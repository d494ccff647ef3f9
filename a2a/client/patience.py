"""The time that calls may take, and their repetition: how often, after how long, and which."""

from collections.abc import Awaitable, Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import TypeVar

from msgspec import Struct, field

from a2a.client.clock import SYSTEM, Clock
from a2a.client.errors import ClientError
from a2a.requests import Request

Outcome = TypeVar("Outcome")


class Timeouts(Struct, frozen=True, kw_only=True):
    """Limits in seconds."""

    connect: float = 5.0
    """For a connection."""
    request: float = 30.0
    """For a whole call, each attempt anew. A stream has no such limit."""
    silence: float | None = 60.0
    """For the time in which a stream brings no byte. Then it is taken up again. None: no limit."""
    methods: Mapping[type[Request], float] = field(default_factory=dict)
    """Limits of single operations in place of `request`, such as {SendMessage: 600}."""

    def of(self, request: type[Request]) -> float:
        """Return the limit of a call."""
        return self.methods.get(request, self.request)


class Retries(Struct, frozen=True, kw_only=True):
    """The repetition of calls that failed on the way, or that the server could not take: exponential, with jitter."""

    times: int = 3
    """The largest number of repetitions."""
    first: float = 0.1
    """Seconds before the first repetition."""
    factor: float = 2.0
    jitter: float = 0.2
    """The share of a pause by which it is made shorter or longer at random."""
    longest: float = 30.0
    """The longest pause in seconds. A server that asks for a longer one is not called again: the error says so."""
    resend: bool = True
    """Repeat a message that may have arrived, under its id. Servers that remember message ids, as ours do, take it
    once. Say False for a server that does not: then a message is repeated only if it certainly did not arrive."""
    reconnects: int = 10
    """The largest number of reconnections in a row that bring nothing new to a stream."""

    def pause(self, number: int, clock: Clock = SYSTEM, least: float | None = None) -> float:
        """Return the seconds before a repetition, the first of which has the number 0. The server may ask for more."""
        plain = min(self.first * self.factor**number, self.longest)
        seconds = plain * (1 + self.jitter * (2 * clock.chance() - 1))
        return max(seconds, least or 0.0)


async def repeated(attempt: Callable[[], Awaitable[Outcome]], retries: Retries, clock: Clock, *, safe: bool) -> Outcome:
    """Return the outcome of a call, which is made again as long as its errors are retryable.

    `safe` says that repeating a call that the server has processed does no harm. Raises the error of the last attempt.
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
    """Return the seconds that a Retry-After header asks for, as a number or a date (RFC 9110, 10.2.3)."""
    if not header:
        return None
    text = header.strip()
    if text.isascii() and text.isdigit():
        return float(text[:9])
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - clock.today())
    except (ValueError, OverflowError):
        return None
