"""The page of a task: facts, timeline, messages, artifacts, runs, deliveries and calls."""

from typing import Any

import msgspec
import orjson

from a2a.dialects.json.json_1_0 import decode_status, task_of
from a2a.files import is_stored
from a2a.money import show_usd
from a2a.requests import Priority
from a2a.states import TERMINAL
from a2a.types import Artifact, Message, Part
from tasks_app import event_log
from tasks_app.admin import timeline
from tasks_app.admin.deliveries import build_deliveries, select_deliveries
from tasks_app.admin.exchanges import build_call
from tasks_app.admin.readonly import Fact
from tasks_app.admin.text import Pane, format_size, format_time, reveal
from tasks_app.database.keyset import fetch_page
from tasks_app.files import link_to
from tasks_app.models import Delivery, Exchange, RelayedTask, Run, Task
from tasks_app.operators import reach
from tasks_app.operators.damage import BROKEN

EXCHANGES, RUNS, DELIVERIES = 100, 50, 50
"""Newest rows of each kind that the page shows."""


def build_context(task: Task, viewer: Any, *, exchanges: bool, deliveries: bool) -> dict[str, Any]:
    """Return the template context. The flags say whether the viewer may see exchanges and deliveries."""
    message_pane, artifact_pane = Pane(), Pane()
    messages, artifacts, broken = read_contents(task, message_pane, artifact_pane)
    events, older = timeline.build_lines(task, exchanges=exchanges)
    runs, more_runs = fetch_page(Run.objects.filter(task_id=task.pk).order_by("-id"), RUNS)
    calls: list[Exchange] = []
    more_calls = False
    if exchanges:
        # Another tenant may have asked for the task, in vain: that call is not for those who see this tenant alone.
        rows = reach.limit(viewer, Exchange.objects.filter(task_id=task.pk))
        calls, more_calls = fetch_page(rows.select_related("caller").order_by("-id"), EXCHANGES)
    traces = Pane()
    delivery_rows: list[Delivery] = []
    more_deliveries = False
    if deliveries:
        delivery_rows, more_deliveries = fetch_page(
            select_deliveries().filter(task_id=task.pk).order_by("-seq", "webhook_id"), DELIVERIES
        )
    return {
        "mark": task.state,
        "state": task.get_state_display(),
        "facts": build_facts(task),
        "status_message": read_status_text(task),
        "task_messages": messages,
        "messages_cut": message_pane.is_cut,
        "artifacts": artifacts,
        "artifacts_cut": artifact_pane.is_cut,
        "is_broken": broken,
        "events": events,
        "older_events": older,
        "runs": [build_run(run, traces) for run in runs],
        "more_runs": RUNS if more_runs else 0,
        "exchanges": [build_call(call) for call in calls],
        "more_exchanges": EXCHANGES if more_calls else 0,
        "shows_exchanges": exchanges,
        "deliveries": build_deliveries(delivery_rows),
        "more_deliveries": DELIVERIES if more_deliveries else 0,
    }


def build_facts(task: Task) -> list[Fact]:
    lease = f"{reveal(task.lease_owner)} until {format_time(task.lease_until)}" if task.lease_owner else ""
    return [
        Fact("Status since (UTC)", format_time(task.status_at)),
        Fact("Created (UTC)", format_time(task.created_at)),
        Fact("Agent", reveal(task.agent)),
        Fact("Owner", reveal(task.owner.name)),
        Fact("Tenant", reveal(task.tenant.name)),
        Fact("Context", reveal(task.context_id)),
        Fact("Queue", reveal(task.queue)),
        Fact("Priority", describe_priority(task.priority)),
        Fact("Fence", str(task.fence)),
        Fact("Attempts", describe_attempts(task)),
        Fact("Not before (UTC)", format_time(task.not_before)),
        Fact("Lease (UTC)", lease),
        Fact("Deadline (UTC)", format_time(task.deadline)),
        Fact("Timeout", f"{task.timeout:g} s"),
        Fact("Last event", str(task.last_seq)),
        *build_relayed(task),
        *build_costs(task),
    ]


def build_relayed(task: Task) -> list[Fact]:
    """Return the fact about the remote task behind this one; none for a task of no relay."""
    row: RelayedTask | None = getattr(task, "relayed", None)
    if row is None:
        return []
    remote = f"task {row.remote_id}" if row.remote_id else "the remote agent has not answered yet"
    return [Fact("Relay", reveal(f"{row.relay}: {remote}{', which may go on' if row.is_open else ''}"))]


def build_costs(task: Task) -> list[Fact]:
    """Return the facts about money; none for a task that had nothing to do with it."""
    if task.budget is None and not task.reserved and not task.spent:
        return []
    return [
        Fact("Budget (USD)", "" if task.budget is None else show_usd(task.budget)),
        Fact("Limit by stored budgets (USD)", "" if task.share is None else show_usd(task.share)),
        Fact("Reserved (USD)", show_usd(task.reserved)),
        Fact("Spent (USD)", show_usd(task.spent)),
    ]


def describe_priority(number: int) -> str:
    """Return the priority of a task, with the caller's part of it by name: the step that the number is nearest to."""
    step = min(Priority, key=lambda priority: abs(number - priority))
    return str(number) if step is Priority.NORMAL else f"{number} ({step.name} to its caller)"


def describe_attempts(task: Task) -> str:
    """Return how often the agent was called for the present message, and how often it may be."""
    attempts = f"{task.attempt} of at most {task.max_attempts}"
    return f"{attempts}; the task has ended, so there will be no more" if task.state in TERMINAL else attempts


def read_status_text(task: Task) -> str:
    """Return the text of the status message; empty if there is none, or if the stored status is damaged."""
    try:
        message = decode_status(orjson.loads(task.status)).message
    except BROKEN:
        return ""
    return Pane().show_text(message.text) if message else ""


def read_contents(
    task: Task, message_pane: Pane, artifact_pane: Pane
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Return messages and artifacts as of the last event, and whether the stored task is damaged."""
    try:
        stored = event_log.read_many([event_log.ReadTask(task_id=task.pk, sight=None)])[0]
        value = None if stored is None else task_of(stored.document)
    except BROKEN:
        return [], [], True
    if value is None:
        return [], [], False
    history: tuple[Message, ...] = value.history
    if value.status.message is not None:
        history = (*history, value.status.message)
    # The pane is filled from the newest message back, because the newest matter most if there is no room for all.
    messages = [build_message(message, message_pane) for message in reversed(history) if not message_pane.is_cut]
    artifacts = [build_artifact(artifact, artifact_pane) for artifact in value.artifacts if not artifact_pane.is_cut]
    return messages[::-1], artifacts, False


def build_message(message: Message, pane: Pane) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "id": pane.show_text(message.message_id),
        "parts": [build_part(part, pane) for part in message.parts if not pane.is_cut],
    }


def build_artifact(artifact: Artifact, pane: Pane) -> dict[str, Any]:
    return {
        "name": pane.show_text(artifact.name or ""),
        "id": pane.show_text(artifact.artifact_id),
        "description": pane.show_text(artifact.description or ""),
        "parts": [build_part(part, pane) for part in merge_text_parts(artifact.parts) if not pane.is_cut],
    }


def merge_text_parts(parts: tuple[Part, ...]) -> list[Part]:
    """Join neighbouring text parts: agents send one text in many chunks."""
    result: list[Part] = []
    texts: list[Part] = []
    for part in parts:
        if is_plain_text(part):
            texts.append(part)
            continue
        if texts:
            result.append(join_texts(texts))
            texts = []
        result.append(part)
    return [*result, join_texts(texts)] if texts else result


def is_plain_text(part: Part) -> bool:
    """Return whether the part is text only, without a file name or metadata that joining would lose."""
    return part.text is not None and not part.filename and part.metadata is None


def join_texts(parts: list[Part]) -> Part:
    """Return one part with the text of all, and the media type of the first."""
    if len(parts) == 1:
        return parts[0]
    return Part(text="".join(part.text or "" for part in parts), media_type=parts[0].media_type)


def build_part(part: Part, pane: Pane) -> dict[str, str]:
    """Return a part for the template: text as it is, data as JSON, a file by name and type with a link if we store it.

    An address from an agent or a caller is never a link.
    """
    label = ", ".join(pane.show_text(item) for item in (part.filename, part.media_type) if item)
    if part.text is not None:
        return {"kind": "text", "label": label, "text": pane.show_text(part.text)}
    if part.raw is not None:
        return {"kind": "file", "label": label or "without a name", "text": format_size(len(part.raw))}
    if part.url is not None and is_stored(part):
        # The link leads to our own server, which sends the file as an attachment.
        return {"kind": "file", "label": label or "without a name", "text": "stored apart", "href": link_to(part.url)}
    if part.url is not None:
        return {"kind": "address", "label": label, "text": pane.show_text(part.url)}
    return {"kind": "data", "label": label, "text": pane.show_json(msgspec.json.encode(part.data).decode())}


def build_run(run: Run, traces: Pane) -> dict[str, Any]:
    return {
        "fence": run.fence,
        "worker": reveal(run.worker),
        "started": format_time(run.started_at),
        "ended": format_time(run.ended_at),
        "outcome": reveal(run.outcome),
        "reference": reveal(run.reference),
        "traceback": traces.show_text(run.traceback),
    }
