"""The acts of operators on questions from Slack: to send a reply again that has failed, and to drop a question."""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.db import transaction

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.hints import DueRows, hints
from tasks_app.models import SlackQuestion
from tasks_app.models.states import SlackQuestionState
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.refusals import ActRefused
from tasks_app.slack.questions import move_rows

Act = Callable[[str, Operator], None]


def send_again(question_id: str, by: Operator) -> None:
    """Send a reply again that has failed, from now on as if it were new. Raises ActRefused."""
    now = clock.now()
    columns = {"due_at": now, "created_at": now, "over_at": None, "failures": 0, "problem": ""}
    bridge.do(Do(partial(_move, question_id, by, "send_again", SlackQuestionState.REPLYING, columns)))
    hints.due(DueRows.QUESTIONS)


def drop(question_id: str, by: Operator) -> None:
    """Drop a question, so that nothing more is sent, and the next one of its thread comes. Raises ActRefused."""
    columns = {"due_at": None, "over_at": clock.now(), "text": "", "files": "", "reply": ""}
    bridge.do(Do(partial(_move, question_id, by, "drop", SlackQuestionState.DROPPED, columns)))
    hints.due(DueRows.QUESTIONS)


def _move(question_id: str, by: Operator, verb: str, state: SlackQuestionState, columns: dict[str, Any]) -> None:
    """Move the question, and record the act, in one transaction."""
    row = None if "\0" in question_id else SlackQuestion.objects.filter(pk=question_id).first()
    if row is None:
        raise ActRefused("There is no such question.")
    with transaction.atomic():
        if not move_rows(SlackQuestion.objects.filter(pk=row.pk, state=row.state), state, **columns):
            raise ActRefused(f"It cannot be done: the question is {row.state}.")
        record_acts(by, verb, Change(row, {"state": row.state}, {"state": state.value}))


ACTS: dict[str, Act] = {"send_again": send_again, "drop": drop}
"""The acts by their verbs."""
