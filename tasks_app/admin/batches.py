"""Batches: each with its items, their tasks and their ends. Operators cancel them."""

import re
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from a2a.states import TaskState
from tasks_app.admin.acting import ActionTable, format_count
from tasks_app.admin.filters import CreatedFilter, ListFilter, OwnerFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import format_owner, format_time, reveal
from tasks_app.batches.details import STATES, counts_of, error_of, in_state, page_of
from tasks_app.models import Batch, BatchItem
from tasks_app.operations import batch_acts as acts
from tasks_app.operators import lookup
from tasks_app.webhooks import one_by_one

ITEMS = 200
"""Items of a page."""
PLACE = re.compile(r"[0-9]{1,9}", re.ASCII)
GONE = "gone"
"""The mark of a batch whose task is gone."""


class BatchStateFilter(ListFilter):
    """A filter by the state of the task of a batch. An index has the batches that are not over."""

    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(state.value, state.value) for state in STATES]

    @property
    def is_indexed(self) -> bool:
        return bool(self.value() == TaskState.WORKING)

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        state = self.value()
        if state is None or self.problem:
            return queryset if state is None else queryset.none()
        return in_state(queryset, state)


@admin.register(Batch)
class BatchAdmin(ActionTable[Batch]):
    list_display = ("show_created_at", "show_state", "show_operation", "agent", "show_owner", "size", "cursor", "id")
    list_select_related = ("owner", "tenant")
    list_filter = (BatchStateFilter, OwnerFilter, CreatedFilter)
    related = ("owner", "tenant")
    search_columns = ("pk",)
    search_help_text = "An exact id of a batch, which is that of its task."
    actions = ("cancel",)

    def add_columns(self, request: HttpRequest, rows: list[Batch]) -> None:
        states = lookup.read_states(row.pk for row in rows)
        for row in rows:
            row.state = states.get(row.pk) or GONE  # type: ignore[attr-defined]  # for the list alone

    @admin.display(description="operation")
    def show_operation(self, row: Batch) -> str:
        return reveal(row.operation)

    def build_page(self, request: HttpRequest, row: Batch) -> dict[str, Any]:
        after = request.GET.get("after", "")
        items, rest = page_of(row.pk, int(after) if PLACE.fullmatch(after) else 0, ITEMS)
        state = lookup.read_states([row.pk]).get(row.pk)
        return {
            "mark": state or GONE,
            "state": state or "its task is gone",
            "facts": build_facts(row),
            "items": [_build_item(item) for item in items],
            "after": rest,
            "is_later": bool(items) and items[0].place > 0,
        }

    def summarize(self, rows: list[Batch]) -> list[str]:
        return [format_count(self, len(rows))]

    @admin.action(permissions=["act"], description="Cancel selected batches")
    def cancel(self, request: HttpRequest, queryset: QuerySet[Batch]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "cancel",
            one_by_one(acts.cancel),
            title="Cancel these batches?",
            warning="Their items at work are canceled, and no other begins. Results that are there stay.",
            success="Canceled",
        )


def build_facts(row: Batch) -> list[Fact]:
    """Return the facts at the top of the page."""
    counts = counts_of(row.pk)
    return [
        Fact("Operation", reveal(row.operation)),
        Fact("Agent of the items", row.agent),
        Fact("Agent of its address", row.address or ""),
        Fact("Owner", format_owner(row)),
        Fact("Its task", row.pk, link("task", row.pk)),
        Fact("Items", f"{row.size:,} ({', '.join(f'{number:,} {state}' for state, number in counts.items())})"),
        Fact("Results in its task", f"{row.cursor:,}"),
        Fact("At work at the same time", str(row.max_concurrent)),
        Fact("Begun together", str(row.batch_size)),
        Fact("Optimization", row.optimization),
        Fact("Begun (UTC)", format_time(row.created_at)),
        Fact("Goes on by (UTC)", format_time(row.due_at)),
    ]


def _build_item(item: BatchItem) -> dict[str, Any]:
    """Return a row of the table of items."""
    return {
        "place": item.place,
        "about": reveal(item.about or ""),
        "task": format_html('<a href="{}">{}</a>', link("task", item.task_id), item.task_id) if item.task_id else "",
        "mark": item.state,
        "state": item.state.replace("_", " "),
        "error": reveal(str((error_of(item) or {}).get("message", ""))),
    }
