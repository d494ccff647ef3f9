"""The page of a task: its head, its log, its messages and artifacts, its runs and its calls."""

from typing import Any

import msgspec
import orjson

from a2a.dialects.json.json_1_0 import decode_status, task_of
from a2a.files import is_stored
from a2a.states import TERMINAL
from a2a.types import Artifact, Message, Part
from tasks_app import event_log
from tasks_app.admin import timeline
from tasks_app.admin.deliveries import delivery_lines, delivery_rows
from tasks_app.admin.exchanges import member_line
from tasks_app.admin.paging import held
from tasks_app.admin.readonly import BROKEN, Fact
from tasks_app.admin.text import Pane, moment, size, visible
from tasks_app.files import link_to
from tasks_app.models import Delivery, Exchange, Run, Task

EXCHANGES, RUNS, DELIVERIES = 100, 50, 50
"""The newest that are shown."""


def context(task: Task, *, exchanges: bool, deliveries: bool) -> dict[str, Any]:
    """Everything for the template; exchanges and deliveries only for those who may see them."""
    said, made = Pane(), Pane()
    messages, artifacts, broken = contents(task, said, made)
    events, older = timeline.lines(task, exchanges=exchanges)
    runs, more_runs = held(Run.objects.filter(task_id=task.pk).order_by("-id"), RUNS)
    calls: list[Exchange] = []
    more_calls = False
    if exchanges:
        rows = Exchange.objects.filter(task_id=task.pk).select_related("caller").order_by("-id")
        calls, more_calls = held(rows, EXCHANGES)
    traces = Pane()
    sent: list[Delivery] = []
    more_sent = False
    if deliveries:
        sent, more_sent = held(delivery_rows().filter(task_id=task.pk).order_by("-seq", "config_id"), DELIVERIES)
    return {
        "mark": task.state,
        "state": task.get_state_display(),
        "facts": facts(task),
        "status_message": status_text(task),
        "messages_said": messages,
        "messages_cut": said.cut,
        "artifacts": artifacts,
        "artifacts_cut": made.cut,
        "broken": broken,
        "events": events,
        "older_events": older,
        "runs": [run_line(run, traces) for run in runs],
        "more_runs": RUNS if more_runs else 0,
        "exchanges": [member_line(call) for call in calls],
        "more_exchanges": EXCHANGES if more_calls else 0,
        "shows_exchanges": exchanges,
        "deliveries": delivery_lines(sent),
        "more_deliveries": DELIVERIES if more_sent else 0,
    }


def facts(task: Task) -> list[Fact]:
    lease = f"{visible(task.lease_owner)} until {moment(task.lease_until)}" if task.lease_owner else ""
    return [
        Fact("Status since (UTC)", moment(task.status_at)),
        Fact("Created (UTC)", moment(task.created_at)),
        Fact("Agent", visible(task.agent)),
        Fact("Owner", visible(task.owner.name)),
        Fact("Tenant", visible(task.tenant.name)),
        Fact("Context", visible(task.context_id)),
        Fact("Queue", visible(task.queue)),
        Fact("Priority", str(task.priority)),
        Fact("Attempt", str(task.attempt)),
        Fact("Tries", tries(task)),
        Fact("Not before (UTC)", moment(task.not_before)),
        Fact("Lease (UTC)", lease),
        Fact("Deadline (UTC)", moment(task.deadline)),
        Fact("Timeout", f"{task.timeout:g} s"),
        Fact("Last event", str(task.last_seq)),
    ]


def tries(task: Task) -> str:
    """Return how often the agent was called, and whether it may be called again for the same message."""
    called = f"{task.tries} of at most {task.max_attempts}"
    return f"{called}; no other follows, the task has ended" if task.state in TERMINAL else called


def status_text(task: Task) -> str:
    """Return the agent's message about the status as text."""
    try:
        message = decode_status(orjson.loads(task.status)).message
    except BROKEN:
        return ""
    return Pane().text(message.text) if message else ""


def contents(task: Task, said: Pane, made: Pane) -> tuple[list[dict[str, Any]], list[dict[str, Any]], bool]:
    """Messages and artifacts as of the last event, and whether the log could not be folded."""
    try:
        read = event_log.read_many([event_log.ReadTask(task_id=task.pk, sight=None)])[0]
        folded = None if read is None else task_of(read.document)
    except BROKEN:
        return [], [], True
    if folded is None:
        return [], [], False
    history: tuple[Message, ...] = folded.history
    if folded.status.message is not None:
        history = (*history, folded.status.message)
    # The newest message matters most when there is no room for all.
    messages = [message_lines(message, said) for message in reversed(history) if not said.cut]
    artifacts = [artifact_lines(artifact, made) for artifact in folded.artifacts if not made.cut]
    return messages[::-1], artifacts, False


def message_lines(message: Message, pane: Pane) -> dict[str, Any]:
    return {
        "role": message.role.value,
        "id": pane.text(message.message_id),
        "parts": [part_line(part, pane) for part in message.parts if not pane.cut],
    }


def artifact_lines(artifact: Artifact, pane: Pane) -> dict[str, Any]:
    return {
        "name": pane.text(artifact.name or ""),
        "id": pane.text(artifact.artifact_id),
        "description": pane.text(artifact.description or ""),
        "parts": [part_line(part, pane) for part in merged(artifact.parts) if not pane.cut],
    }


def merged(parts: tuple[Part, ...]) -> list[Part]:
    """A text that came in chunks, as one."""
    out: list[Part] = []
    run: list[Part] = []
    for part in parts:
        if run and not plain(part):
            out.append(joined(run))
            run = []
        if plain(part):
            run.append(part)
        else:
            out.append(part)
    return [*out, joined(run)] if run else out


def plain(part: Part) -> bool:
    return part.text is not None and not part.filename and part.metadata is None


def joined(run: list[Part]) -> Part:
    return (
        run[0] if len(run) == 1 else Part(text="".join(part.text or "" for part in run), media_type=run[0].media_type)
    )


def part_line(part: Part, pane: Pane) -> dict[str, str]:
    """Text as text, data as JSON, a file by name and type, to be downloaded if it is large; an address is no link."""
    label = ", ".join(pane.text(item) for item in (part.filename, part.media_type) if item)
    if part.text is not None:
        return {"kind": "text", "label": label, "text": pane.text(part.text)}
    if part.raw is not None:
        return {"kind": "file", "label": label or "without a name", "text": size(len(part.raw))}
    if part.url is not None and is_stored(part):
        # Our own address, and an attachment: the one kind of link on this page.
        return {"kind": "file", "label": label or "without a name", "text": "stored apart", "href": link_to(part.url)}
    if part.url is not None:
        return {"kind": "address", "label": label, "text": pane.text(part.url)}
    return {"kind": "data", "label": label, "text": pane.json(msgspec.json.encode(part.data).decode())}


def run_line(run: Run, traces: Pane) -> dict[str, Any]:
    return {
        "number": run.number,
        "worker": visible(run.worker),
        "started": moment(run.started_at),
        "ended": moment(run.ended_at),
        "outcome": visible(run.outcome),
        "reference": visible(run.reference),
        "traceback": traces.text(run.traceback),
    }
