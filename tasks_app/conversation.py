"""What was said in a context before: the caller's messages, results, and bare replies."""

import orjson

from a2a.dialects.protojson import decode_artifact, decode_message
from a2a.types import Message, Role
from tasks_app.models import Task, Turn

TURNS = 20
"""The newest, tasks and bare replies together."""


def conversation_of(owner_id: int, context_id: str, without: str = "") -> tuple[Message, ...]:
    """The messages of the owner's context, oldest first, apart from those of one task."""
    tasks = Task.objects.filter(owner_id=owner_id, context_id=context_id).exclude(pk=without)
    pairs = [
        (task.created_at, _messages_of(task.id, task.history, task.artifacts))
        for task in tasks.order_by("-created_at").only("id", "created_at", "history", "artifacts")[:TURNS]
    ]
    turns = Turn.objects.filter(owner_id=owner_id, context_id=context_id).order_by("-created_at")[:TURNS]
    pairs += [
        (turn.created_at, [decode_message(orjson.loads(turn.message)), decode_message(orjson.loads(turn.reply))])
        for turn in turns
    ]
    pairs.sort(key=lambda pair: pair[0])
    return tuple(message for _, messages in pairs[-TURNS:] for message in messages)


def _messages_of(task_id: str, history: str, artifacts: str) -> list[Message]:
    """The history of a task, and its results as messages of the agent."""
    messages = [decode_message(wire) for wire in orjson.loads(history)]
    for wire in orjson.loads(artifacts):
        artifact = decode_artifact(wire)
        messages.append(
            Message(
                message_id=f"{task_id}/{artifact.artifact_id}", role=Role.AGENT, parts=artifact.parts, task_id=task_id
            )
        )
    return messages
