"""The timeline of a task: its log with a sentence for each event."""

from collections.abc import Mapping
from typing import Any, assert_never

from django.db.models import Value
from django.db.models.functions import Length, Substr

from a2a.dialects.json.json_1_0 import event_of
from a2a.documents import EventDocument
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated
from a2a.types import Message, Part
from tasks_app.admin.readonly import link
from tasks_app.admin.text import Pane, format_size, format_time, reveal
from tasks_app.models import Event as Row
from tasks_app.models import Task
from tasks_app.operators.damage import BROKEN
from tasks_app.webhooks import with_files

NEWEST = 500
"""Events that a timeline shows, at most."""
PAYLOAD = 20_000
"""Characters read from each payload. One payload may have a megabyte, and a timeline reads up to NEWEST of them."""
QUOTE = 120
"""Characters quoted from a text."""


def build_lines(task: Task, *, exchanges: bool) -> tuple[list[dict[str, Any]], int]:
    """Return lines for the newest events, oldest first, and the number of older events that are not shown.

    With `exchanges` each line links to the call that wrote its event.
    """
    rows = (
        Row.objects.filter(task_id=task.pk)
        .order_by("-seq")
        .annotate(length=Length("payload"), head=Substr("payload", 1, Value(PAYLOAD)))
        .values("seq", "fence", "kind", "state", "actor", "exchange_id", "created_at", "length", "head")[:NEWEST]
    )
    pane = Pane()
    newest = [build_line(row, task, pane, exchanges) for row in rows]
    return newest[::-1], newest[-1]["seq"] - 1 if newest else 0


def build_line(row: Mapping[str, Any], task: Task, pane: Pane, exchanges: bool) -> dict[str, Any]:
    is_whole = row["length"] <= PAYLOAD
    show = pane.show_json if is_whole else pane.show_text
    payload = "" if pane.is_cut else show(with_files(row["head"], ""))
    return {
        "seq": row["seq"],
        "time": format_time(row["created_at"]),
        "fence": row["fence"],
        "actor": reveal(row["actor"]),
        "kind": reveal(row["kind"]),
        "description": describe_row(row, task) if is_whole else describe_columns(row),
        "payload": payload,
        "is_cut": pane.is_cut or not is_whole,
        "size": format_size(row["length"]),
        "href": link("exchange", row["exchange_id"]) if exchanges and row["exchange_id"] else "",
    }


def describe_row(row: Mapping[str, Any], task: Task) -> str:
    """Return what happened, from the payload."""
    document = EventDocument(
        task_id=task.pk,
        context_id=task.context_id,
        seq=row["seq"],
        kind=row["kind"],
        payload=row["head"],
        state=row["state"],
    )
    try:
        event = event_of(document)
    except BROKEN:
        return describe_columns(row)
    return describe_event(event)


def describe_columns(row: Mapping[str, Any]) -> str:
    """Return what happened, from the columns alone: for a payload that is too long to read, or damaged."""
    kinds = {"task": "created", "statusUpdate": "status", "artifactUpdate": "artifact", "message": "message"}
    state = f" → {format_state(reveal(row['state']))}" if row["state"] else ""
    return kinds.get(row["kind"], reveal(row["kind"])) + state


def describe_event(event: Event) -> str:
    match event:
        case TaskCreated(task=task):
            first = quote_message(task.history[0]) if task.history else ""
            return f"created → {format_state(task.status.state)}{first}"
        case StatusChanged(status=status):
            return f"→ {format_state(status.state)}" + (quote_message(status.message) if status.message else "")
        case MessageAdded(message=message, status=status):
            state = f" → {format_state(status.state)}" if status else ""
            return f"{message.role.value} message{state}{quote_message(message)}"
        case ArtifactAdded(artifact=artifact, append=append, last_chunk=last_chunk):
            name = shorten(artifact.name or artifact.artifact_id)
            verb = "continued" if append else "written"
            return f"artifact {name} {verb}: {quote_parts(artifact.parts)}" + (", last chunk" if last_chunk else "")
        case _:
            assert_never(event)


def format_state(state: str) -> str:
    return state.replace("_", " ")


def quote_message(message: Message) -> str:
    """Return a colon and the beginning of the message."""
    return f": {quote_parts(message.parts)}"


def quote_parts(parts: tuple[Part, ...]) -> str:
    """Return the beginning of the text in quotation marks, and the number of other parts."""
    text = " ".join(part.text for part in parts if part.text)
    others = sum(part.text is None for part in parts)
    more = "1 part without text" if others == 1 else f"{others} parts without text"
    if not text:
        return more if others else "empty"
    return f"“{shorten(text)}”" + (f" and {more}" if others else "")


def shorten(text: str) -> str:
    """Return the beginning of a text on one line."""
    text = reveal(" ".join(text[: QUOTE * 4].split()))
    return text if len(text) <= QUOTE else text[: QUOTE - 1] + "…"
