"""The conversation of a context before a task: messages of its owner, results of tasks, and direct replies."""

from collections.abc import Collection
from datetime import datetime
from itertools import accumulate
from operator import attrgetter
from typing import Literal, NamedTuple

import orjson
from django.db.models.functions import Length

from a2a.dialects.json.json_1_0 import decode_message, task_of
from a2a.types import Message, Role, Task
from tasks_app.event_log import ReadTask, read_many
from tasks_app.models import DirectReply
from tasks_app.models import Task as Row

TURNS = 20
"""Tasks and direct replies in a conversation, at most. The newest are taken."""
MOST = 1_000_000
"""Characters of a conversation, at most. The turn that exceeds them is left out, and so are all before it."""


class _Size(NamedTuple):
    """The size of one turn: a task or a direct reply."""

    kind: Literal["task", "reply"]
    created_at: datetime
    size: int
    id: str


def conversation_of(
    owner_id: int, context_id: str, without: str = "", agents: Collection[str] | None = None
) -> tuple[Message, ...]:
    """Return the messages of the owner's context, oldest first, apart from those of the task `without`.

    With `agents`, return only those of these agents' tasks: a sender whose credential is valid for some agents must not
    learn from one of them what others have said. Direct replies have no agent, so they are left out then.
    """
    tasks = Row.objects.filter(owner_id=owner_id, context_id=context_id).exclude(pk=without)
    replies = DirectReply.objects.filter(owner_id=owner_id, context_id=context_id)
    if agents is not None:
        tasks, replies = tasks.filter(agent__in=agents), replies.none()
    replies = replies.annotate(size=Length("message") + Length("reply"))
    # Sizes first: reading and folding tasks that do not fit would take time from all other callers of the process.
    columns = _Size._fields[1:]
    sizes = [_Size("task", *row) for row in tasks.order_by("-created_at").values_list(*columns)[:TURNS]]
    sizes += [_Size("reply", *row) for row in replies.order_by("-created_at").values_list(*columns)[:TURNS]]
    newest = sorted(sizes, key=attrgetter("created_at"), reverse=True)[:TURNS]
    totals = accumulate(one.size for one in newest)
    turns = [one for total, one in zip(totals, newest, strict=True) if total <= MOST]
    times = {one.id: one.created_at for one in newest if one.kind == "task"}
    items = [ReadTask(task_id=one.id, sight=None) for one in turns if one.kind == "task"]
    reads = read_many(items) if items else []
    pairs = [(times[read.document.id], _messages_of(task_of(read.document))) for read in reads if read]
    pairs += [
        (row.created_at, [decode_message(orjson.loads(row.message)), decode_message(orjson.loads(row.reply))])
        for row in DirectReply.objects.filter(pk__in=[one.id for one in turns if one.kind == "reply"])
    ]
    pairs.sort(key=lambda pair: pair[0])
    return tuple(message for _, messages in pairs for message in messages)


def _messages_of(task: Task) -> list[Message]:
    """Return the history of a task, and its artifacts as messages of the agent."""
    results = [
        Message(message_id=f"{task.id}/{artifact.artifact_id}", role=Role.AGENT, parts=artifact.parts, task_id=task.id)
        for artifact in task.artifacts
    ]
    return [*task.history, *results]
