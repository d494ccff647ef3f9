"""The way of one question: its files are fetched, it goes through verification to execution, and the reply into its
thread, edited while it grows."""

import asyncio
import logging
import random
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from datetime import timedelta
from functools import partial
from typing import Protocol

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from msgspec.structs import replace

from a2a.errors import Error, Internal, RateLimited, Unavailable
from tasks_app import clock
from tasks_app.event_log.readers import readers
from tasks_app.models.states import SlackQuestionState
from tasks_app.slack import attachments, mrkdwn, questions
from tasks_app.slack.attachments import Luggage
from tasks_app.slack.lane import ask
from tasks_app.slack.messages import Messages
from tasks_app.slack.questions import Lost, Turn
from tasks_app.slack.sentences import NOTHING, WORDLESS, sentence_for
from tasks_app.slack.web_api import SlackAway, SlackRefused, WebApi

log = logging.getLogger(__name__)
FIRST_SECONDS, LAST_SECONDS = 2.0, 300.0
"""The pause after the first try that Slack did not answer, and the longest one."""
LANE_ERRORS = (DatabaseError, InterfaceError, Error)
"""The errors with which work on a lane may end."""


class Reply(Protocol):
    """The answer so far, as verification yields it."""

    @property
    def text(self) -> str: ...

    @property
    def final(self) -> bool: ...

    @property
    def task_id(self) -> str: ...


Ask = Callable[[Turn, Luggage], AsyncGenerator[Reply, None]]
"""Has the question of a turn verified and executed, with its files, and yields the answer while it grows. The first
reply comes when the task and its files are stored.

The same turn may be asked again after its process died, and is executed once. Raises the errors of a2a/errors.py.
"""


class Postponed(Exception):
    """Raised for a question that another attempt answers later, perhaps in another process."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


class Ending:
    """The end of the work of a question: the whole reply, and the reason of the error that it tells."""

    def __init__(self, text: str, refusal: str = "") -> None:
        self.text = text
        self.refusal = refusal


async def answer(turn: Turn, api: WebApi, ask_zone: Ask) -> None:
    """Answer one question, or put it off. Raises nothing but CancelledError."""
    work = asyncio.ensure_future(_answer(turn, api, ask_zone))
    renewing = asyncio.ensure_future(_renew(turn, work))
    try:
        await work
    except Lost:
        log.info("question %s is no longer of this process", turn.id)
    except asyncio.CancelledError:
        # The lease is lost, or the process ends: then another one goes on when the lease is over.
        if not work.cancelled():
            work.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await work
            raise
    except Exception as error:
        log.exception("question %s has met an error that was not expected", turn.id)
        name, is_away = type(error).__name__, isinstance(error, LANE_ERRORS)
        if is_away or not _is_old(turn):
            await _put_off(turn, name, _pause(turn))
        else:
            with suppress(Lost, *LANE_ERRORS):
                await _give_up(turn, f"It failed for too long: {name}")
    finally:
        renewing.cancel()


async def _renew(turn: Turn, work: "asyncio.Future[None]") -> None:
    """Keep the question while the work is under way, and end the work when the question is lost."""
    while True:
        await asyncio.sleep(settings.A2A_LEASE_SECONDS / 3)
        try:
            await ask(partial(questions.renew, turn))
        except Lost:
            work.cancel()
            return
        except LANE_ERRORS as error:
            log.warning("question %s: its lease could not be renewed: %s", turn.id, error)


async def _answer(turn: Turn, api: WebApi, ask_zone: Ask) -> None:
    messages = Messages(turn, api)
    try:
        if turn.state == SlackQuestionState.WAITING:
            ending = await _converse(turn, messages, ask_zone)
            await ask(partial(questions.store_reply, turn, ending.text, ending.refusal))
            turn = messages.turn = replace(turn, reply=ending.text, state=SlackQuestionState.REPLYING)
        await messages.show(mrkdwn.split(turn.reply))
        await ask(partial(questions.finish, turn))
    except Postponed as error:
        await ask(partial(questions.put_off, turn, error.seconds))
    except SlackAway as error:
        await _wait_for_slack(turn, error)
    except SlackRefused as error:
        log.warning("question %s: Slack refuses the reply: %s", turn.id, error)
        await ask(partial(questions.fail, turn, f"Slack refuses the reply: {error}"))


async def _converse(turn: Turn, messages: Messages, ask_zone: Ask) -> Ending:
    """Return the whole reply. Raises SlackAway if the files cannot be fetched, and Postponed."""
    if not turn.text and not turn.files:
        return Ending(WORDLESS)
    space = messages.api.space
    async with space.hold(turn.workspace_id, attachments.size_of(turn)) as place:
        return await _execute(turn, messages, ask_zone, partial(space.release, place))


async def _execute(turn: Turn, messages: Messages, ask_zone: Ask, release: Callable[[], None]) -> Ending:
    """Return the whole reply. Give the space of the files back as soon as they are stored."""
    luggage = await attachments.fetch(turn)
    turn = messages.turn = await _find_task(turn)
    notes, replies = luggage.notes, ask_zone(turn, luggage)
    del luggage  # The reply may take hours, and only its beginning needs the files.
    try:
        text = await _follow(turn, messages, replies, release)
    except Error as error:
        if readers.draining:
            raise Postponed(0.0) from None
        if turn.task_id and not turn.continues and isinstance(error, RateLimited):
            raise Postponed(error.retry_after) from None  # It was admitted before, and is followed again.
        ending = _refuse(turn, error)
    except (DatabaseError, InterfaceError, Lost):
        raise
    except Exception as error:
        log.exception("question %s: verification failed", turn.id)
        ending = Ending(sentence_for(Internal()), f"{Internal.reason}: {type(error).__name__}"[:64])
    else:
        ending = Ending(text or NOTHING)
    return Ending("\n\n".join([ending.text, *notes]), ending.refusal)


async def _find_task(turn: Turn) -> Turn:
    """Return the turn with the task that it continues, if it does. The task is stored before it is asked again."""
    open_task = await ask(partial(questions.find_open_task, turn))
    if open_task and not turn.task_id:
        await ask(partial(questions.set_task, turn, open_task))
    return replace(turn, task_id=open_task or turn.task_id, continues=open_task)


def _refuse(turn: Turn, error: Error) -> Ending:
    log.info("question %s: %s (%s)", turn.id, error.reason, error.message)
    return Ending(sentence_for(error), error.reason)


async def _follow(
    turn: Turn, messages: Messages, replies: AsyncGenerator[Reply, None], release: Callable[[], None]
) -> str:
    """Show the reply while it grows, and return its whole text."""
    editor = Editor(messages)
    text, task_id = "", turn.task_id
    try:
        async with aclosing(replies) as growing:
            async for reply in growing:
                release()
                text = reply.text
                if reply.task_id and reply.task_id != task_id:
                    task_id = reply.task_id
                    await ask(partial(questions.set_task, turn, task_id))
                if not reply.final:
                    editor.show(text)
    finally:
        await editor.stop()
    return text


class Editor:
    """Sends the beginning of a reply while it grows, always as it is then: what Slack is too slow for is skipped."""

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.text = ""
        self.work: asyncio.Task[None] | None = None
        self.stopping = False

    def show(self, text: str) -> None:
        """Have the text shown soon."""
        if text and text != self.text:
            self.text = text
            if self.work is None and not self.stopping:
                self.work = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        text = ""
        while text != self.text and not self.stopping:
            text = self.text
            try:
                await self.messages.show([mrkdwn.preview(text)])
            except (SlackAway, SlackRefused) as error:
                log.info("question %s: its reply cannot be shown yet: %s", self.messages.turn.id, error)
                return  # The whole reply is sent in any case, or tried again.
        self.work = None

    async def stop(self) -> None:
        """Send nothing more. A call under way ends first, so that its message is stored."""
        self.stopping = True
        if self.work is not None:
            with suppress(Lost):
                await self.work


async def _wait_for_slack(turn: Turn, error: SlackAway) -> None:
    """Put the question off, or give it up when Slack was away for too long."""
    if _is_old(turn):
        await _give_up(turn, f"Slack was away for too long: {error}")
    else:
        await _put_off(turn, f"Slack is away: {error}", max(error.seconds or 0.0, _pause(turn)))


def _is_old(turn: Turn) -> bool:
    return clock.now() > turn.created_at + timedelta(hours=settings.A2A_SLACK_RETRY_HOURS)


async def _give_up(turn: Turn, problem: str) -> None:
    """Fail the question. An operator may send its reply again."""
    if turn.state == SlackQuestionState.WAITING:
        await ask(partial(questions.store_reply, turn, turn.reply or sentence_for(Unavailable()), Unavailable.reason))
    await ask(partial(questions.fail, turn, problem))


async def _put_off(turn: Turn, problem: str, seconds: float) -> None:
    with suppress(Lost, *LANE_ERRORS):
        await ask(partial(questions.put_off, turn, seconds, problem, failed=True))


def _pause(turn: Turn) -> float:
    """Return a pause that doubles with each failure, a part of it by chance."""
    whole: float = min(LAST_SECONDS, FIRST_SECONDS * 2 ** min(turn.failures, 16))
    return whole * random.uniform(0.5, 1)  # noqa: S311  # spreads load, protects nothing
