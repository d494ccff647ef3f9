"""Errors of agents: the text for the caller, the line in the log, and the row with the traceback for operators."""

import logging
import secrets
import traceback
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from a2a.failures import Failure, plain_text
from a2a.mistakes import AgentMistake
from a2a.states import TaskState
from tasks_app import clock
from tasks_app.database.rows import RunRow
from tasks_app.log_fields import line_of, run_fields, words_of
from tasks_app.runner.stopped import FileRefused, ProcessCrashed

log = logging.getLogger(__name__)
LONGEST_TEXT, LONGEST_REASON, LONGEST_TRACE = 4_000, 100, 100_000
"""Characters that a run keeps of an agent's failure, of its reason, and of a traceback."""
Judged = TypeVar("Judged")


class Unjudged(Exception):
    """An error of an agent that raised another one while it was judged."""


def judge_safely(error: Exception, judge: Callable[[Exception], Judged]) -> Judged:
    """Return the judgement of an error of an agent. If the error raises another one meanwhile, as a Failure whose class
    does not call `super().__init__`, an Unjudged is judged in its place: a run must get its end."""
    try:
        return judge(error)
    except Exception as fault:  # noqa: BLE001  # the code of an agent may raise anything
        fault.__cause__ = error
        unjudged = Unjudged("the error of the agent could not be judged")
        unjudged.__cause__ = fault
        return judge(unjudged)


def explain(who: str, task_id: str, agent: str, error: Exception) -> tuple[str, str]:
    """Log an error of an agent. Return the text for its caller, and the reference to the log; empty for a Failure."""
    if isinstance(error, Failure):
        text = text_of(error)
        fields = run_fields(task_id, agent, text)
        log.warning("%s: agent %s failed, and its caller reads: %s", who, agent, line_of(text), extra=fields)
        return text, ""
    reference = secrets.token_hex(6)
    fields = run_fields(task_id, agent, words_of(error), reference)
    if isinstance(error, AgentMistake):
        log.error("%s: agent %s failed, reference %s: %s", who, agent, reference, error, extra=fields)
    else:
        log.error("%s: agent %s failed, reference %s", who, agent, reference, exc_info=error, extra=fields)
    return f"{_what_failed(error)} Reference: {reference}", reference


def _what_failed(error: Exception) -> str:
    if isinstance(error, ProcessCrashed):
        return "The agent's process crashed."
    return "A file of the result could not be stored." if isinstance(error, FileRefused) else "The agent failed."


def text_of(failure: Failure) -> str:
    """Return the text of a failure for its caller. A class of the agent's own may have put any value there."""
    return _cut(plain_text(failure.text), LONGEST_TEXT)


def reason_of(error: Exception) -> str:
    """Return the reason of a Failure; empty for other errors."""
    return plain_text(error.reason)[:LONGEST_REASON] if isinstance(error, Failure) else ""


def trace_of(error: Exception) -> str:
    """Return the traceback of an error, which ends with the text of the error."""
    return _cut(plain_text("".join(traceback.format_exception(error))), LONGEST_TRACE)


def _cut(text: str, most: int) -> str:
    """Return the text, or its beginning with a mark if it has more than so many characters."""
    mark = f" … (cut: {len(text):,} characters)"
    return text if len(text) <= most else text[: most - len(mark)] + mark


def failed_row(task_id: str, fence: int, worker: str, since: datetime, reference: str, error: Exception) -> RunRow:
    """Return the row of a run whose agent raised an error. No other row has the traceback."""
    trace = str(error) if isinstance(error, AgentMistake) else trace_of(error)
    return RunRow(
        task_id=task_id,
        fence=fence,
        worker=worker,
        started_at=since,
        ended_at=clock.now(),
        outcome=TaskState.FAILED.value,
        reference=reference,
        traceback=plain_text(trace.replace("\0", "\N{REPLACEMENT CHARACTER}")),
    )
