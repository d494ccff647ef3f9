"""Acts: the record of what operators did, as a read-only list with a page for each act."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.filters import RecentFilter
from tasks_app.admin.readonly import Fact, LogTable
from tasks_app.admin.text import Pane, format_time, reveal
from tasks_app.models.acts import Act


class ActFilter(RecentFilter):
    @property
    def is_indexed(self) -> bool:
        # Operators act rarely, so the table is short enough to search without an index.
        return True


class OperatorFilter(ActFilter):
    title = parameter_name = "operator"


class VerbFilter(ActFilter):
    title = parameter_name = "verb"


class KindFilter(ActFilter):
    title = parameter_name = "kind"


@admin.register(Act)
class ActAdmin(LogTable[Act]):
    list_display = ("show_time", "show_operator", "show_verb", "kind", "show_name", "show_reason", "door")
    list_filter = (OperatorFilter, VerbFilter, KindFilter)
    list_display_links = ("show_time",)
    has_acts = False
    search_help_text = "The exact id of the task, delivery, webhook, key or user that an operator acted on."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Act], search_term: str
    ) -> tuple[QuerySet[Act], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        return queryset.none() if "\0" in text else queryset.filter(object_id=text), False

    @admin.display(description="time (UTC)")
    def show_time(self, row: Act) -> str:
        return format_time(row.at)

    @admin.display(description="operator")
    def show_operator(self, row: Act) -> str:
        return reveal(row.operator)

    @admin.display(description="act")
    def show_verb(self, row: Act) -> str:
        return reveal(row.verb)

    @admin.display(description="on")
    def show_name(self, row: Act) -> str:
        return reveal(row.name)

    @admin.display(description="reason")
    def show_reason(self, row: Act) -> str | None:
        return reveal(row.reason) or None

    def build_page(self, request: HttpRequest, row: Act) -> dict[str, Any]:
        pane = Pane()
        return {
            "facts": [
                Fact("Time (UTC)", format_time(row.at)),
                Fact("Operator", reveal(row.operator)),
                Fact("Act", reveal(row.verb)),
                Fact("Kind", reveal(row.kind)),
                Fact("Id", reveal(row.object_id)),
                Fact("Name", reveal(row.name)),
                Fact("Reason", reveal(row.reason)),
                Fact("Door", row.door),
                Fact("Tenant", reveal(row.tenant.name) if row.tenant else ""),
                Fact("Address", row.peer or ""),
                Fact("Trace", reveal(row.trace or "")),
            ],
            "before": pane.show_json(row.before),
            "after": pane.show_json(row.after),
        }
