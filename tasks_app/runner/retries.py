"""The verdict on a task whose attempt ended without a result: another attempt after a pause, or a failure with the
reason."""

import random

from msgspec import Struct

from a2a.agents import Agent, registry
from a2a.errors import Timeout
from a2a.events import Event
from a2a.failures import Failure, Retry
from a2a.options import TRANSIENT
from a2a.scribe import Scribe
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.ids import uuid7
from tasks_app.runner.failures import reason_of

BACKOFF = 1.0
"""Seconds before the second attempt of an agent that is not registered in this process."""
LONGEST = 300.0
"""The longest pause in seconds, unless the agent's own backoff is longer."""
DAY = 86_400.0
"""The most seconds that an agent may ask for with Retry(after=...)."""
JITTER = 0.2
"""The part of a pause by which it varies at random, so that tasks that failed together do not come back together."""


class Attempt(Struct, frozen=True):
    """An attempt that has ended, and the limit on attempts."""

    task_id: str
    context_id: str
    agent: str
    number: int
    """How many times the agent was called for this message, this attempt included."""
    most: int
    """How many times it may be called: the option `attempts` of the agent."""

    @property
    def is_last(self) -> bool:
        return self.number >= self.most

    def __str__(self) -> str:
        return f"attempt {self.number} of {self.most}"


class Verdict(Struct, frozen=True):
    """The event that ends the attempt, and the outcome of its run."""

    event: Event
    outcome: str
    attempts: int = 0
    """Added to the count of attempts: -1 if the agent was not called."""
    delay: float | None = None
    """Seconds before the next attempt."""


def judge_release(attempt: Attempt, why: str) -> Verdict:
    """Judge a claim after which the agent was not called: the task is released."""
    return Verdict(_status(attempt, TaskState.SUBMITTED, f"{why} The task goes on later."), "released", attempts=-1)


def judge_interruption(attempt: Attempt) -> Verdict:
    """Judge an attempt whose process was told to end while the agent was at work."""
    if not attempt.is_last:
        sentence = f"Interrupted by a restart of the server in {attempt}. The agent is called again."
        return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "interrupted")
    sentence = f"The agent was interrupted by a restart of the server{_no_more(attempt)}"
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "interrupted")


def judge_loss(attempt: Attempt) -> Verdict:
    """Judge an attempt whose lease ended: its process died, froze, or was cut off from the database."""
    if not attempt.is_last:
        delay = pause(attempt)
        sentence = f"The worker was lost in {attempt}. The agent is called again in {_seconds(delay)}."
        return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "lost", delay=delay)
    sentence = f"The worker was lost while the agent was at work{_no_more(attempt)}"
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "lost")


def judge_outage(attempt: Attempt, seconds: float) -> Verdict:
    """Judge an attempt that was stopped because the database accepted no write of it."""
    if not attempt.is_last:
        delay = pause(attempt)
        sentence = f"The database was away in {attempt}. The agent is called again in {_seconds(delay)}."
        return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), "cut off", delay=delay)
    sentence = f"The database was away for {seconds:g} s while the agent was at work{_no_more(attempt)}"
    return Verdict(_status(attempt, TaskState.FAILED, sentence), "cut off")


def judge_timeout(attempt: Attempt, timeout: float, how: str = "") -> Verdict:
    """Judge an attempt that exceeded its timeout. The task fails: another attempt would take as long."""
    sentence = f"The agent took longer than its timeout of {timeout:g} s{how}."
    return Verdict(_status(attempt, TaskState.FAILED, sentence, Timeout.reason), "overdue")


def judge_error(attempt: Attempt, error: Exception, words: str, *, transient: bool) -> Verdict:
    """Judge an attempt whose agent raised an error. `words` is the text for the caller."""
    if not transient:
        return Verdict(_status(attempt, TaskState.FAILED, words, reason_of(error)), TaskState.FAILED.value)
    prefix = f"Attempt {attempt.number} of {attempt.most} failed"
    if attempt.is_last:
        sentence = words if attempt.most == 1 else f"{prefix}: {words}"
        return Verdict(_status(attempt, TaskState.FAILED, sentence, reason_of(error)), TaskState.FAILED.value)
    delay = pause(attempt, error.after if isinstance(error, Retry) else None)
    sentence = f"{prefix}: {words.rstrip('.')}; tried again in {_seconds(delay)}."
    return Verdict(_status(attempt, TaskState.SUBMITTED, sentence), TaskState.FAILED.value, delay=delay)


def is_transient(agent: Agent | None, error: Exception) -> bool:
    """Return whether another attempt may succeed, by the options of the agent."""
    if isinstance(error, Failure):
        return isinstance(error, Retry)
    return isinstance(error, agent.retry_on if agent else TRANSIENT)


def pause(attempt: Attempt, after: float | None = None) -> float:
    """Return the seconds before the next attempt: at least those that the agent asked for, else its backoff, doubled
    with each attempt."""
    if after is not None:
        chance = random.random()  # noqa: S311  # a guess of it gains nothing
        return min(max(after, 0.0), DAY) * (1 + JITTER * chance)
    agent = registry.get(attempt.agent)
    first = agent.backoff if agent else BACKOFF
    doubled = first * 2.0 ** min(attempt.number - 1, 30)
    return spread(min(doubled, max(first, LONGEST)))


def spread(seconds: float) -> float:
    """Return the seconds, varied at random."""
    chance = random.random()  # noqa: S311  # a guess of it gains nothing
    return float(seconds * (1 - JITTER + 2 * JITTER * chance))


def _no_more(attempt: Attempt) -> str:
    """Return the end of a sentence: why the agent is not called again, and the remedy."""
    if attempt.most == 1:
        return ", and it is tried once only. Define it with attempts=2 to have it called again."
    return f" in the last of its {attempt.most} attempts."


def _seconds(delay: float) -> str:
    return f"{delay:.0f} s" if delay >= 10 else f"{delay:.1f} s"


def _status(attempt: Attempt, state: TaskState, sentence: str, reason: str = "") -> Event:
    return Scribe(attempt.task_id, attempt.context_id, uuid7).explain(state, clock.now(), sentence, reason)
