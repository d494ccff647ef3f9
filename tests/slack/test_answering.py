"""A question from Slack: acknowledged, verified, executed, and answered once in its thread."""

import asyncio
import threading
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any

import pytest

from a2a import errors
from a2a.errors import Error
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.event_log.readers import readers
from tasks_app.models import SlackQuestion
from tasks_app.models.states import SLACK_QUESTION_TRANSITIONS, SlackQuestionState
from tasks_app.slack import questions, web_api
from tasks_app.slack.answering import answer
from tasks_app.slack.mrkdwn import PIECE, PIECES
from tasks_app.slack.sentences import NOTHING, SENTENCES, WORDLESS, sentence_for
from tasks_app.slack.web_api import WebApi
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import until
from tests.slack.conftest import Front, Said
from tests.support.slack_api import CHANNEL, TOKEN, Answer, direct, mention

pytestmark = [pytest.mark.storage]


def test_a_mention_is_answered_in_its_thread(front: Front) -> None:
    front.zone.replies = [Said("The ans"), Said("The answer", final=True, task_id="task-1")]
    front.ask(mention("what &amp; why?"))
    (turn, _), (row,) = front.zone.asked[0], front.questions()
    assert (turn.text, turn.caller.name, turn.caller.tenant) == ("what & why?", "slack", "home")
    (message,) = front.slack.messages
    assert (message["text"], message["thread_ts"]) == ("The answer", "1700000000.000100")
    assert (row.state, row.task_id, row.text, row.reply, row.due_at) == ("answered", "task-1", "", "", None)
    assert row.posts == message["ts"]


def test_a_message_within_a_thread_is_answered_there(front: Front) -> None:
    front.ask(direct("again", ts="1700000000.000200", thread_ts="1700000000.000100"))
    (message,) = front.slack.messages
    assert (message["channel"], message["thread_ts"]) == ("D0DIRECT", "1700000000.000100")


def test_questions_of_a_thread_are_answered_one_after_another(front: Front) -> None:
    """The second one may be the answer to a question of the agent, which must be there first."""
    now_asked: list[str] = []
    most = 0

    async def note(number: int) -> None:
        nonlocal most
        now_asked.append("")
        most = max(most, len(now_asked))
        await asyncio.sleep(0)
        now_asked.pop()

    front.zone.before = note
    thread = "1700000000.000100"
    front.ask(
        mention("one", event_id="Ev1", ts=thread),
        mention("two", event_id="Ev2", ts="1700000000.000200", thread_ts=thread),
        mention("three", event_id="Ev3", ts="1700000000.000300", thread_ts=thread),
    )
    assert [turn.text for turn, _ in front.zone.asked] == ["one", "two", "three"]
    assert most == 1


@pytest.mark.requirement("ZONE-08")
def test_each_error_is_told_in_its_sentence_alone(front: Front) -> None:
    """No number, no reason, no reference and no detail of the error reaches the user."""
    details = {"detail": "Traceback /srv/app.py -32603", "reference": "a1b2c3"}
    events = []
    for number, kind in enumerate(errors.ALL):
        error: Error = kind(**details)
        error.args = ("Traceback /srv/app.py",)

        async def ask(turn: Any, luggage: Any, error: Error = error) -> Any:
            raise error
            yield

        front.zone.replies = [error]
        events = [mention(event_id=f"Ev{number}", ts=f"1700000000.{number:06}")]
        front.ask(*events)
    texts = front.slack.texts()
    assert texts == [sentence_for(kind()) for kind in errors.ALL]
    assert {row.refusal for row in front.questions()} == {kind.reason for kind in errors.ALL}
    assert {row.state for row in front.questions()} == {"answered"}


def test_a_fault_is_told_without_its_words(front: Front) -> None:
    front.zone.replies = [Said("half"), KeyError("secret /srv/app.py")]
    front.ask(mention())
    assert front.slack.texts() == [SENTENCES[errors.Internal]]
    assert front.questions()[0].refusal == "INTERNAL_ERROR: KeyError"


def test_a_rate_limit_names_the_wait(front: Front) -> None:
    front.zone.replies = [errors.RateLimited(90)]
    front.ask(mention())
    assert "in 90 seconds" in front.slack.texts()[0]


def test_a_mention_without_words_asks_for_some(front: Front) -> None:
    front.ask(mention(""))
    assert front.slack.texts() == [WORDLESS]
    assert not front.zone.asked


def test_an_agent_that_says_nothing_is_a_reply_too(front: Front) -> None:
    front.zone.replies = [Said("", final=True)]
    front.ask(mention())
    assert front.slack.texts() == [NOTHING]


def test_the_reply_mentions_nobody(front: Front) -> None:
    front.zone.replies = [Said("<!channel> & <@U1>", final=True)]
    front.ask(mention())
    assert front.slack.texts() == ["&lt;!channel&gt; &amp; &lt;@U1&gt;"]


def test_a_long_reply_is_several_messages_and_then_cut_with_a_hint(front: Front) -> None:
    text = "\n".join(f"line {number}" for number in range(20_000))
    front.zone.replies = [Said(text[:9_000]), Said(text, final=True)]
    front.ask(mention())
    texts = front.slack.texts()
    assert len(texts) == PIECES + 1
    assert "\n".join(texts[:-1]) == text[: sum(map(len, texts[:-1])) + PIECES - 1]
    assert "are left out" in texts[-1]
    assert all(len(each) <= PIECE for each in texts)


def test_edits_that_would_come_late_are_skipped(front: Front) -> None:
    """While Slack takes one message, the reply grows by hundreds of pieces: the next edit has all of them."""
    gate = front.slack.gates["chat.postMessage"] = threading.Event()

    async def hold(number: int) -> None:
        if number == 1:
            await asyncio.to_thread(until, lambda: front.slack.messages, "the first message")
        if number == 300:
            gate.set()
            await asyncio.to_thread(until, lambda: front.slack.count("chat.update"), "the first edit")

    front.zone.before = hold
    front.zone.replies = [*(Said("x" * number) for number in range(1, 302)), Said("x" * 400, final=True)]
    front.ask(mention())
    texts = [body["text"] for method, body, _ in front.slack.calls if method in {"chat.postMessage", "chat.update"}]
    assert texts[:2] == ["x …", "x" * 300 + " …"]
    assert len(texts) <= 4
    assert front.slack.texts() == ["x" * 400]


def test_a_pause_that_slack_asks_for_is_kept(front: Front) -> None:
    wait = Answer(429, {"ok": False, "error": "ratelimited"}, (("Retry-After", "1"),))
    front.slack.script["chat.postMessage"] = [wait]
    front.ask(mention())
    first, second = [time for method, _, time in front.slack.calls if method == "chat.postMessage"]
    assert second - first >= 0.9
    assert front.slack.texts() == ["the answer"]


def test_pauses_without_end_are_left_to_the_row(front: Front, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_api, "PATIENCE", 3.0)
    front.slack.away = Answer(429, {"ok": False, "error": "ratelimited"}, (("Retry-After", "0"),))
    front.ask(mention())
    (row,) = front.questions()
    assert (row.state, row.problem) == ("replying", "Slack is away: chat.postMessage: Slack asks for a pause")
    posts = [time for method, _, time in front.slack.calls if method == "chat.postMessage"]
    assert len(posts) in {4, 8}, "the reply is shown as it grows, and again at its end"


def test_a_pause_of_a_search_is_kept(front: Front) -> None:
    wait = Answer(429, {"ok": False, "error": "ratelimited"}, (("Retry-After", "1"),))
    front.slack.script = {"chat.postMessage": [Answer(503, {})], "conversations.replies": [wait]}
    front.ask(mention())
    SlackQuestion.objects.update(due_at=clock.now())
    asyncio.run(front.answer())
    first, second = [time for method, _, time in front.slack.calls if method == "conversations.replies"]
    assert second - first >= 0.9
    assert front.slack.texts() == ["the answer"]


def test_a_long_pause_is_left_to_the_row(front: Front) -> None:
    wait = Answer(429, {"ok": False, "error": "ratelimited"}, (("Retry-After", "3600"),))
    front.slack.script["chat.postMessage"] = [wait]
    front.ask(mention())
    (row,) = front.questions()
    assert (row.state, row.problem) == ("replying", "Slack is away: chat.postMessage: Slack asks for a pause")
    assert row.due_at is not None
    assert row.due_at > clock.now() + timedelta(seconds=3_000)


def test_a_reply_waits_while_slack_is_away(front: Front) -> None:
    front.slack.away = Answer(503, {})
    front.ask(mention())
    (row,) = front.questions()
    assert (row.state, row.reply, row.failures) == ("replying", "the answer", 1)
    assert "HTTP 503" in row.problem
    assert row.due_at is not None
    front.slack.away = None
    SlackQuestion.objects.update(due_at=clock.now())
    asyncio.run(front.answer())
    assert front.slack.texts() == ["the answer"]
    assert len(front.zone.asked) == 1, "the question was asked again although its reply was stored"
    assert front.questions()[0].problem == ""


def test_a_reply_is_given_up_when_slack_is_away_for_too_long(front: Front, settings: Any) -> None:
    settings.A2A_SLACK_RETRY_HOURS = 1
    front.slack.away = Answer(503, {})

    async def story() -> None:
        await front.send(mention())
        created_at = clock.now() - timedelta(hours=2)
        await bridge.ask(Do(lambda: SlackQuestion.objects.update(created_at=created_at)))
        await front.answer()

    asyncio.run(story())
    (row,) = front.questions()
    assert (row.state, row.due_at) == ("failed", None)
    assert "away for too long" in row.problem


def test_a_question_that_meets_the_same_fault_for_too_long_is_given_up(
    front: Front, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_SLACK_RETRY_HOURS = 1
    monkeypatch.setattr("tasks_app.slack.answering.mrkdwn.split", lambda text: text.no_such_method())
    front.ask(mention())
    (row,) = front.questions()
    assert (row.state, row.problem, row.due_at is None) == ("replying", "AttributeError", False)

    async def story() -> None:
        past = clock.now() - timedelta(hours=2)
        await bridge.ask(Do(lambda: SlackQuestion.objects.update(created_at=past, due_at=past)))
        await front.answer()

    asyncio.run(story())
    (row,) = front.questions()
    assert (row.state, row.problem, row.due_at) == ("failed", "It failed for too long: AttributeError", None)


def test_a_refusal_of_slack_is_for_operators(front: Front) -> None:
    front.slack.script["chat.postMessage"] = [Answer(body={"ok": False, "error": "channel_not_found"})]
    front.ask(mention())
    (row,) = front.questions()
    assert (row.state, row.problem) == ("failed", "Slack refuses the reply: channel_not_found")
    assert TOKEN not in row.problem


def test_a_message_whose_answer_was_lost_is_not_posted_again(front: Front) -> None:
    """Slack has posted it, but the connection ended before its answer."""
    front.slack.script["chat.postMessage"] = [Answer(502, {}, does=True)]
    front.ask(mention())
    assert (len(front.slack.messages), front.questions()[0].posts) == (1, "")
    SlackQuestion.objects.update(due_at=clock.now())
    asyncio.run(front.answer())
    assert front.slack.texts() == ["the answer"]
    assert front.slack.count("chat.postMessage") == 1
    assert front.questions()[0].state == "answered"


def test_a_process_that_died_while_posting_is_followed_by_one_message(front: Front) -> None:
    """It ends between the post and its answer. The next process asks Slack for the message first."""
    gate = front.slack.gates["chat.postMessage"] = threading.Event()

    async def die() -> None:
        await front.send(mention())
        responder = front.responder()
        await responder.begin_turns()
        await asyncio.to_thread(until, lambda: front.slack.messages, "the message is posted")
        for work in responder.turns:
            work.cancel()
        await asyncio.gather(*responder.turns, return_exceptions=True)

    asyncio.run(die())
    gate.set()
    front.slack.gates.clear()
    front.zone.replies = [Said("the whole answer", final=True)]
    SlackQuestion.objects.update(due_at=clock.now())
    asyncio.run(front.answer())
    assert (len(front.slack.messages), front.slack.count("chat.postMessage")) == (1, 1)
    assert front.questions()[0].state == "answered"


def test_the_question_of_a_process_that_ends_is_due_soon(front: Front, settings: Any) -> None:
    settings.A2A_LEASE_SECONDS = 600
    responder = front.responder()
    front.zone.before = lambda number: asyncio.Event().wait()

    async def end() -> None:
        await front.send(mention())
        responder.start()
        await asyncio.to_thread(until, lambda: front.zone.asked, "the question is asked")
        readers.drain()

    asyncio.run(end())
    responder.stop()
    until(lambda: front.questions()[0].due_at <= clock.now() + timedelta(seconds=questions.SOON), "it is due soon")


def test_a_process_that_lost_its_question_writes_nothing_more(front: Front) -> None:
    gate = asyncio.Event()

    async def story() -> None:
        await front.send(mention())
        front.zone.before = lambda number: gate.wait()
        (old,) = await bridge.ask(Do(partial(questions.take, 10)))
        late = asyncio.ensure_future(answer(old, WebApi(), front.zone.ask))
        await bridge.ask(Do(questions.release_all))
        front.zone.before = lambda number: None
        await front.answer()
        gate.set()
        await late

    asyncio.run(story())
    assert front.slack.texts() == ["the answer"]
    assert front.slack.count("chat.postMessage") == 1


def test_a_process_that_stops_leaves_the_question_to_another(front: Front) -> None:
    front.zone.replies = [errors.Unavailable()]

    async def story() -> None:
        await front.send(mention())
        readers.draining = True
        (turn,) = await bridge.ask(Do(partial(questions.take, 10)))
        await answer(turn, WebApi(), front.zone.ask)
        readers.draining = False

    asyncio.run(story())
    assert front.questions()[0].state == "waiting"
    front.zone.replies = [Said("later", final=True)]
    asyncio.run(front.answer())
    assert front.slack.texts() == ["later"]


def test_a_reply_that_was_deleted_in_slack_is_left_alone(front: Front) -> None:
    async def remove(number: int) -> None:
        if number == 1:
            await asyncio.to_thread(until, lambda: front.slack.messages, "the first message")
            front.slack.messages.clear()

    front.zone.before = remove
    front.zone.replies = [Said("the"), Said("the answer", final=True)]
    front.ask(mention())
    assert front.slack.texts(CHANNEL) == []
    assert front.questions()[0].state == "answered"


def test_a_question_that_was_admitted_is_followed_again_within_the_limits(front: Front) -> None:
    """Its task is there, so its user is not told of a limit that the second look has met."""
    front.zone.replies = [errors.RateLimited(120)]

    async def story() -> None:
        await front.send(mention())
        await bridge.ask(Do(lambda: SlackQuestion.objects.update(task_id="task-1")))
        await front.answer()

    asyncio.run(story())
    (row,) = front.questions()
    assert row.state == "waiting"
    assert row.due_at is not None
    assert row.due_at > clock.now() + timedelta(seconds=60)
    assert not front.slack.messages


def test_old_questions_are_deleted_and_newer_ones_stay(front: Front) -> None:
    front.ask(mention(), mention(event_id="Ev2", ts="1700000000.000200"))
    kind = ROW_KINDS["slack_questions"]
    assert kind.old(clock.now() - timedelta(days=1)).count() == 0
    portion = kind.delete(clock.now() + timedelta(seconds=1), "", 1)
    assert (portion.count, portion.more) == (1, True)
    assert len(front.questions()) == 1


def test_a_question_moves_only_as_its_state_allows(front: Front) -> None:
    front.ask(mention())
    for before, after in product(SlackQuestionState, SlackQuestionState):
        SlackQuestion.objects.update(state=before)
        moves = questions.move_rows(SlackQuestion.objects.all(), after)
        assert bool(moves) == (after in SLACK_QUESTION_TRANSITIONS[before]), (before, after)
