"""Workflows: each with its phases, its tasks and their results. Operators cancel them."""

from typing import Any

import orjson
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from a2a.dialects.json.json_1_0 import decode_artifact
from tasks_app.admin.acting import ActionTable, format_count
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import format_owner, format_time, reveal
from tasks_app.admin.timeline import quote_parts
from tasks_app.exchanges.redaction import redact
from tasks_app.models import PhaseTask, Workflow
from tasks_app.operations import workflow_acts as acts
from tasks_app.operators.damage import BROKEN
from tasks_app.webhooks import one_by_one

TASKS = 200
"""Newest tasks that a page shows."""


class WorkflowStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return list(Workflow.STATES)


@admin.register(Workflow)
class WorkflowAdmin(ActionTable[Workflow]):
    list_display = ("show_created_at", "show_state", "show_name", "show_owner", "phase", "show_reason", "id")
    list_select_related = ("owner", "tenant")
    list_filter = (WorkflowStateFilter,)
    related = ("owner", "tenant")
    search_columns = ("pk", "name")
    search_help_text = "An exact id or name of a workflow."
    actions = ("cancel",)

    @admin.display(description="name")
    def show_name(self, row: Workflow) -> str:
        return reveal(row.name)

    @admin.display(description="reason")
    def show_reason(self, row: Workflow) -> str | None:
        return reveal(row.reason[:100]) or None

    def build_page(self, request: HttpRequest, row: Workflow) -> dict[str, Any]:
        tasks = list(PhaseTask.objects.filter(workflow_id=row.pk).order_by("-pk")[: TASKS + 1])
        return {
            "mark": row.state,
            "state": row.state,
            "facts": build_facts(row),
            "tasks": [_build_task(task) for task in reversed(tasks[:TASKS])],
            "more": TASKS if len(tasks) > TASKS else 0,
        }

    def summarize(self, rows: list[Workflow]) -> list[str]:
        return [format_count(self, len(rows))]

    @admin.action(permissions=["act"], description="Cancel selected workflows")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Workflow]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "cancel",
            one_by_one(acts.cancel),
            title="Cancel these workflows?",
            warning="They end for good, and their unfinished tasks are canceled.",
            success="Canceled",
        )


def build_facts(row: Workflow) -> list[Fact]:
    """Return the facts at the top of the page."""
    return [
        Fact("Name", reveal(row.name)),
        Fact("Owner", format_owner(row)),
        Fact("Agent of its address", row.address or ""),
        Fact("Phase", row.phase),
        Fact("Executed until", row.runs_until or ""),
        Fact("Reason", reveal(row.reason)),
        Fact("Preferred agents and skills", reveal(_list_types(row))),
        Fact("Configuration", reveal(redact(row.configuration.encode()))),
        Fact("Context", reveal(row.context_id)),
        Fact("Begun (UTC)", format_time(row.created_at)),
        Fact("Changed (UTC)", format_time(row.updated_at)),
        Fact("Ended (UTC)", format_time(row.ended_at)),
    ]


def _list_types(row: Workflow) -> str:
    """Return the preferences on one line, or the stored text as it is if it is damaged."""
    try:
        return ", ".join(orjson.loads(row.agent_types))
    except BROKEN:
        return row.agent_types


def _build_task(task: PhaseTask) -> dict[str, Any]:
    """Return a row of the table of tasks, with the beginning of its result."""
    return {
        "phase": task.phase,
        "task": format_html('<a href="{}">{}</a>', link("task", task.task_id), task.task_id),
        "agent": task.agent,
        "state": task.state or "",
        "time": format_time(task.created_at),
        "end": format_time(task.ended_at),
        "text": reveal(_quote(task)),
    }


def _quote(task: PhaseTask) -> str:
    """Return the beginning of a result, or the stored text as it is if it is damaged."""
    try:
        artifacts = [decode_artifact(artifact) for artifact in orjson.loads(task.artifacts or "[]")]
        return quote_parts(tuple(part for artifact in artifacts for part in artifact.parts))
    except BROKEN:
        return (task.artifacts or "")[:100]
