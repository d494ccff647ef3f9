"""Events that bring a question, as rows. Each message is stored once, however often Slack sends it."""

from functools import partial
from typing import Any

import orjson
from msgspec import Struct

from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import Do
from tasks_app.ids import uuid7
from tasks_app.models import SlackQuestion, SlackUser
from tasks_app.models.states import SlackQuestionState
from tasks_app.slack.workspaces import Installation

SECONDS = 2.0
"""The longest time for storing an event. Slack waits for 3 seconds, and then sends it again."""


class Arrival(Struct, frozen=True, kw_only=True):
    """A question as its event has it."""

    event_id: str
    kind: str
    channel: str
    thread: str
    ts: str
    user: str
    text: str
    files: tuple[dict[str, Any], ...] = ()
    is_foreign: bool = False
    """Whether its user belongs to another workspace, which shares the channel."""


async def store(arrival: Arrival, home: Installation) -> str | None:
    """Return the id of the new question; None for one that is stored already, or whose user may not ask.

    Raises Busy and errors of the database.
    """
    id = await bridge.ask(Do(partial(_store, arrival, home)), SECONDS)
    return id or None


def _store(arrival: Arrival, home: Installation) -> str:
    user = SlackUser.objects.filter(workspace_id=home.id, user_id=arrival.user).select_related("principal").first()
    if user is None and arrival.is_foreign:
        return ""
    row = SlackQuestion(
        id=uuid7(),
        workspace_id=home.id,
        tenant_id=user.principal.tenant_id if user else home.caller.tenant_id,
        owner_id=user.principal_id if user else home.caller.owner_id,
        event_id=arrival.event_id,
        channel=arrival.channel,
        thread=arrival.thread,
        ts=arrival.ts,
        user=arrival.user,
        text=arrival.text,
        files=orjson.dumps(arrival.files).decode() if arrival.files else "",
        state=SlackQuestionState.WAITING,
        due_at=clock.shared(),
        created_at=clock.now(),
    )
    # Two processes may get the same event at the same time: the constraints leave one row.
    SlackQuestion.objects.bulk_create([row], ignore_conflicts=True)
    return row.pk if SlackQuestion.objects.filter(pk=row.pk).exists() else ""
