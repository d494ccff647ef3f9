"""Questions as rows: whose turn it is, and how far the reply of each is in Slack.

A process goes on with a question until `due_at`, and puts that time off while it does. Every write names the fence of
its turn, so a process that was frozen writes nothing more once another has taken the question.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import orjson
from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from msgspec import Struct

from a2a.dialects.zone import context_of
from a2a.states import INTERRUPTED
from tasks_app import clock
from tasks_app.callers.access import Caller, caller_for
from tasks_app.models import SlackQuestion, Task
from tasks_app.models.states import SLACK_QUESTION_TRANSITIONS, SlackQuestionState
from tasks_app.sealing import Unreadable, unseal

OF_ONE = 20
"""Questions of one workspace that a process answers at the same time."""
UNREADABLE_SECONDS = 60.0
"""The pause of a question whose bot token cannot be read."""
SOON = 5.0
"""Seconds that Slack may need to show a message whose posting the end of a process has broken off. Another process that
looked before would post it again."""
KIND = "slack"
"""The kind of the credential of callers from Slack."""


class Lost(Exception):
    """Raised when another process has taken the question, or it is over."""


class Turn(Struct, frozen=True, kw_only=True):
    """A question that this process has taken, as it was then."""

    id: str
    fence: int
    workspace_id: int
    team_id: str
    agent: str
    token: str
    caller: Caller
    channel: str
    thread: str
    ts: str
    user: str
    text: str
    files: tuple[dict[str, Any], ...]
    state: SlackQuestionState
    task_id: str | None
    continues: str = ""
    """The task that it continues, because the agent has asked back in the thread; empty for a task of its own."""
    reply: str
    posts: tuple[str, ...]
    sends: int
    failures: int
    created_at: datetime


def take(most: int, busy: Mapping[int, int] | None = None) -> list[Turn]:
    """Take questions that are due, for as long as a lease lasts. The questions of a thread are answered in order.

    `busy` has the number of questions that this process answers already for each workspace. A row that another
    transaction has locked is left for later.
    """
    with transaction.atomic():
        rows = _take_rows(most, busy or {})
    # After the commit: a damaged row must not undo the take, or each round would meet it again.
    return [turn for row in rows if (turn := _turn(row)) is not None]


def _take_rows(most: int, busy: Mapping[int, int]) -> list[SlackQuestion]:
    now, own, counts = clock.shared(), list[SlackQuestion](), Counter(busy)
    while len(own) < most:
        full = [workspace for workspace, count in counts.items() if count >= OF_ONE]
        room = most - len(own)
        related = ("workspace", "owner__tenant")
        rows = list(_due(now).exclude(workspace_id__in=full).select_related(*related)[:room])
        for row in rows:
            if counts[row.workspace_id] < OF_ONE and _take(row, now):
                counts[row.workspace_id] += 1
                own.append(row)
        if len(rows) < room:
            break
    return own


def _due(now: datetime) -> QuerySet[SlackQuestion]:
    """Lock the questions that may be taken, in the order in which they became due."""
    earlier = SlackQuestion.objects.filter(
        workspace_id=OuterRef("workspace_id"),
        channel=OuterRef("channel"),
        thread=OuterRef("thread"),
        id__lt=OuterRef("id"),
        due_at__isnull=False,
    )
    rows = SlackQuestion.objects.select_for_update(skip_locked=True, no_key=True, of=("self",))
    rows = rows.filter(~Exists(earlier), due_at__lte=now, workspace__disabled_at__isnull=True)
    return rows.order_by("due_at", "pk")


def _take(row: SlackQuestion, now: datetime) -> bool:
    """Take a question, and return whether it was still there to be taken."""
    fresh = SlackQuestion.objects.filter(pk=row.pk, due_at=row.due_at, fence=row.fence)
    row.fence += 1
    return bool(fresh.update(due_at=_lease(now), fence=row.fence))


def _lease(now: datetime) -> datetime:
    return now + timedelta(seconds=settings.A2A_LEASE_SECONDS)


def _turn(row: SlackQuestion) -> Turn | None:
    """Return the turn of a question; None if its bot token cannot be read."""
    try:
        token = unseal(row.workspace.bot_token)
    except Unreadable:
        problem = "the bot token of the workspace cannot be read: SECRET_KEY has changed"
        _rows(row.pk, row.fence).update(due_at=_later(UNREADABLE_SECONDS), problem=problem)
        return None
    return Turn(
        id=row.pk,
        fence=row.fence,
        workspace_id=row.workspace_id,
        team_id=row.workspace.team_id,
        agent=row.workspace.agent,
        token=token,
        caller=caller_for(row.owner, frozenset(row.workspace.scopes.split()), credential=f"{KIND}:{row.workspace_id}"),
        channel=row.channel,
        thread=row.thread,
        ts=row.ts,
        user=row.user,
        text=row.text,
        files=tuple(orjson.loads(row.files)) if row.files else (),
        state=SlackQuestionState(row.state),
        task_id=row.task_id,
        reply=row.reply,
        posts=tuple(row.posts.split()),
        sends=row.sends,
        failures=row.failures,
        created_at=row.created_at,
    )


def renew(turn: Turn) -> None:
    """Keep the question from other processes for another lease. Raises Lost."""
    _write(turn, due_at=_lease(clock.shared()))


def put_off(turn: Turn, seconds: float, problem: str = "", *, failed: bool = False) -> None:
    """Have any process go on with the question after that time. Raises Lost."""
    _write(turn, due_at=_later(seconds), problem=problem[:500], failures=F("failures") + int(failed))


def begin_post(turn: Turn, number: int) -> None:
    """Store that the posting of a message begins. Raises Lost."""
    _write(turn, sends=number)


def add_posts(turn: Turn, posts: list[str]) -> None:
    """Store the messages of the reply that are in Slack. Raises Lost."""
    _write(turn, posts=" ".join(posts), sends=len(posts))


def find_open_task(turn: Turn) -> str:
    """Return the task whose agent has asked back in the thread; empty if there is none.

    Another attempt gets the same task, which is that of an earlier question too, whatever its state is by then.
    """
    if turn.task_id:
        earlier = SlackQuestion.objects.filter(task_id=turn.task_id, id__lt=turn.id)
        return turn.task_id if earlier.exists() else ""
    rows = Task.objects.filter(
        owner_id=turn.caller.owner_id, context_id=context_of(turn.channel, turn.thread), state__in=INTERRUPTED
    )
    return rows.order_by("-status_at").values_list("pk", flat=True).first() or ""


def set_task(turn: Turn, task_id: str) -> None:
    """Store the task that answers the question. Raises Lost."""
    _write(turn, task_id=task_id)


def store_reply(turn: Turn, reply: str, refusal: str = "") -> None:
    """Store the whole reply, which is on its way to Slack from now on. Raises Lost."""
    _move(turn, SlackQuestionState.REPLYING, reply=reply.replace("\0", ""), refusal=refusal, text="", files="")


def finish(turn: Turn) -> None:
    """Store that the whole reply is in Slack, and drop its text, which the task has. Raises Lost."""
    _move(turn, SlackQuestionState.ANSWERED, reply="", problem="", due_at=None, over_at=clock.now())


def fail(turn: Turn, problem: str) -> None:
    """Give the reply up. It stays for operators, who may have it sent again. Raises Lost."""
    _move(turn, SlackQuestionState.FAILED, problem=problem[:500], due_at=None, over_at=clock.now())


def release(turns: Sequence[Turn]) -> None:
    """Have any process go on soon with questions that this process has taken."""
    soon = _later(SOON)
    for turn in turns:
        _rows(turn.id, turn.fence).filter(due_at__gt=soon).update(due_at=soon)


def release_all() -> None:
    """Make every question that is not over due now. Call it at the start of the only process of an installation."""
    SlackQuestion.objects.filter(due_at__isnull=False).update(due_at=clock.shared())


def move_rows(rows: QuerySet[SlackQuestion], state: SlackQuestionState, **columns: Any) -> int:
    """Move the rows whose state allows it, and set these columns in them; return how many moved."""
    sources = [source for source, targets in SLACK_QUESTION_TRANSITIONS.items() if state in targets]
    return rows.filter(state__in=sources).update(state=state, **columns)


def _move(turn: Turn, state: SlackQuestionState, **columns: Any) -> None:
    if not move_rows(_rows(turn.id, turn.fence), state, **columns):
        raise Lost


def _write(turn: Turn, **columns: Any) -> None:
    if not _rows(turn.id, turn.fence).update(**columns):
        raise Lost


def _rows(id: str, fence: int) -> QuerySet[SlackQuestion]:
    return SlackQuestion.objects.filter(pk=id, fence=fence, due_at__isnull=False)


def _later(seconds: float) -> datetime:
    return clock.shared() + timedelta(seconds=seconds)
