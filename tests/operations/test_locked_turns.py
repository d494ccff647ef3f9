"""Rows of batches, answers and questions that another transaction has locked: the other rows are taken without them."""

from collections.abc import Callable
from typing import Any

import pytest

from tasks_app.batches.rows import take_turns as take_batches
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.ids import uuid7
from tasks_app.models import AgentAnswer, Batch, SlackQuestion, SlackWorkspace
from tasks_app.models.states import SlackQuestionState
from tasks_app.sealing import seal
from tasks_app.shared_streams.answers import take_turns as take_answers
from tasks_app.slack.questions import take as take_questions
from tests.conftest import Person
from tests.database.locks import lock_row, needs_row_locks
from tests.operations.batching import execute
from tests.operations.conversations import say, start, talk

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("lanes"),
    needs_row_locks,
]
LONG_AGO = "2000-01-01T00:00:00Z"


def begin_batches(who: Person) -> None:
    for _ in range(3):
        execute(who, "a")


def begin_answers(who: Person) -> None:
    async def story() -> None:
        for _ in range(3):
            await say(who, await start(who, "form-coroutine"))

    talk(story)


def begin_questions(who: Person) -> None:
    home = SlackWorkspace.objects.create(
        team_id="T1", principal_id=who.caller.owner_id, scopes="*", bot_token=seal("xoxb-1"), created_at=LONG_AGO
    )
    for place in range(3):
        SlackQuestion.objects.create(
            id=uuid7(),
            workspace=home,
            tenant_id=who.caller.tenant_id,
            owner_id=who.caller.owner_id,
            event_id=f"E{place}",
            channel="C",
            thread=f"{place}",
            ts=f"{place}",
            user="U",
            text="hi",
            state=SlackQuestionState.WAITING,
            due_at=LONG_AGO,
            created_at=LONG_AGO,
        )


@pytest.mark.parametrize(
    ("begin", "model", "table", "take"),
    [
        (begin_batches, Batch, "batch", lambda: take_batches(10, ())),
        (begin_answers, AgentAnswer, "agentanswer", lambda: take_answers(10)),
        (begin_questions, SlackQuestion, "slackquestion", lambda: take_questions(10)),
    ],
    ids=["batches", "answers", "questions"],
)
def test_a_locked_row_is_left_and_the_others_are_taken(
    owner: Person, begin: Callable[[Person], None], model: Any, table: str, take: Callable[[], list[Any]]
) -> None:
    begin(owner)
    first, *others = model.objects.order_by("due_at", "pk").values_list("pk", flat=True)
    with lock_row(table, "id", str(first)):
        assert {turn.id for turn in bridge.do(Do(take), patience=0)} == set(others)
    assert [turn.id for turn in bridge.do(Do(take))] == [first]
