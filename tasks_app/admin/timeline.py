"""The log of a task, event by event, in words."""

from collections.abc import Mapping
from typing import Any, assert_never

from django.db.models import Value
from django.db.models.functions import Length, Substr

from a2a.dialects.json.json_1_0 import event_of
from a2a.documents import EventDocument
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.types import Message, Part
from tasks_app.admin.readonly import BROKEN, link
from tasks_app.admin.text import Pane, moment, size, visible
from tasks_app.models import Event as Row
from tasks_app.models import Task
from tasks_app.webhooks import with_files

NEWEST = 500
"""Events that are shown."""
PAYLOAD = 20_000
"""Characters of a payload that are read: one event may hold a megabyte, and there are NEWEST of them."""
WORDS = 120
"""Characters of a text that are quoted."""


def lines(task: Task, *, exchanges: bool) -> tuple[list[dict[str, Any]], int]:
    """The newest events, oldest first, and how many older ones are not shown. Calls are linked if exchanges."""
    rows = (
        Row.objects.filter(task_id=task.pk)
        .order_by("-seq")
        .annotate(length=Length("payload"), head=Substr("payload", 1, Value(PAYLOAD)))
        .values("seq", "attempt", "kind", "state", "actor", "exchange_id", "created_at", "length", "head")[:NEWEST]
    )
    pane = Pane()
    newest = [line(row, task, pane, exchanges) for row in rows]
    return newest[::-1], newest[-1]["seq"] - 1 if newest else 0


def line(row: Mapping[str, Any], task: Task, pane: Pane, exchanges: bool) -> dict[str, Any]:
    whole = row["length"] <= PAYLOAD
    payload = "" if pane.cut else (pane.json if whole else pane.text)(with_files(row["head"], ""))
    return {
        "seq": row["seq"],
        "time": moment(row["created_at"]),
        "attempt": row["attempt"],
        "actor": visible(row["actor"]),
        "kind": visible(row["kind"]),
        "words": words(row, task) if whole else fewer_words(row),
        "payload": payload,
        "cut": pane.cut or not whole,
        "size": size(row["length"]),
        "href": link("exchange", row["exchange_id"]) if exchanges and row["exchange_id"] else "",
    }


def words(row: Mapping[str, Any], task: Task) -> str:
    """What happened."""
    stored = EventDocument(
        task_id=task.pk,
        context_id=task.context_id,
        seq=row["seq"],
        kind=row["kind"],
        payload=row["head"],
        state=row["state"],
    )
    try:
        event = event_of(stored)
    except BROKEN:
        return fewer_words(row)
    return sentence(event)


def fewer_words(row: Mapping[str, Any]) -> str:
    """The same from the columns alone: the payload is too long to read, or not what it should be."""
    what = {"task": "created", "statusUpdate": "status", "artifactUpdate": "artifact", "message": "message"}
    state = f" → {visible(row['state']).replace('_', ' ')}" if row["state"] else ""
    return what.get(row["kind"], visible(row["kind"])) + state


def sentence(event: Event) -> str:
    match event:
        case TaskCreated(task=task):
            first = said(task.history[0]) if task.history else ""
            return f"created → {named(task.status.state)}{first}"
        case StatusChanged(status=status):
            return f"→ {named(status.state)}" + (said(status.message) if status.message else "")
        case MessageAdded(message=message, status=status):
            state = f" → {named(status.state)}" if status else ""
            return f"{message.role.value} message{state}{said(message)}"
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk):
            name = short(artifact.name or artifact.artifact_id)
            how = "continued" if append else "written"
            return f"artifact {name} {how}: {quoted(artifact.parts)}" + (", the last chunk" if last_chunk else "")
        case _:
            assert_never(event)


def named(state: str) -> str:
    return state.replace("_", " ")


def said(message: Message) -> str:
    return f": {quoted(message.parts)}"


def quoted(parts: tuple[Part, ...]) -> str:
    """The beginning of the text, or what there is instead."""
    text = " ".join(part.text for part in parts if part.text)
    others = sum(part.text is None for part in parts)
    more = "1 part that is no text" if others == 1 else f"{others} parts that are no text"
    if not text:
        return more if others else "empty"
    return f"“{short(text)}”" + (f" and {more}" if others else "")


def short(text: str) -> str:
    text = visible(" ".join(text[: WORDS * 4].split()))
    return text if len(text) <= WORDS else text[: WORDS - 1] + "…"
