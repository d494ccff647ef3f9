"""What operators did: a list that nobody changes, with a page for each act."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.filters import RecentFilter
from tasks_app.admin.readonly import Fact, LogTable
from tasks_app.admin.text import Pane, moment, visible
from tasks_app.models.acts import Act


class ActFilter(RecentFilter):
    @property
    def is_indexed(self) -> bool:
        # People act seldom: the table is short.
        return True


class OperatorFilter(ActFilter):
    title = parameter_name = "operator"


class VerbFilter(ActFilter):
    title = parameter_name = "verb"


class KindFilter(ActFilter):
    title = parameter_name = "kind"


@admin.register(Act)
class ActAdmin(LogTable[Act]):
    list_display = ("time", "shown_operator", "shown_verb", "kind", "shown_name", "shown_reason", "door")
    list_filter = (OperatorFilter, VerbFilter, KindFilter)
    list_display_links = ("time",)
    is_acted_on = False
    search_help_text = "The exact id of a task, delivery, webhook, key or user that was acted on."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Act], search_term: str
    ) -> tuple[QuerySet[Act], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        return queryset.none() if "\0" in text else queryset.filter(object_id=text), False

    @admin.display(description="time (UTC)")
    def time(self, row: Act) -> str:
        return moment(row.at)

    @admin.display(description="operator")
    def shown_operator(self, row: Act) -> str:
        return visible(row.operator)

    @admin.display(description="act")
    def shown_verb(self, row: Act) -> str:
        return visible(row.verb)

    @admin.display(description="on")
    def shown_name(self, row: Act) -> str:
        return visible(row.name)

    @admin.display(description="reason")
    def shown_reason(self, row: Act) -> str | None:
        return visible(row.reason) or None

    def page(self, request: HttpRequest, row: Act) -> dict[str, Any]:
        pane = Pane()
        return {
            "facts": [
                Fact("Time (UTC)", moment(row.at)),
                Fact("Operator", visible(row.operator)),
                Fact("Act", visible(row.verb)),
                Fact("Kind", visible(row.kind)),
                Fact("Id", visible(row.object_id)),
                Fact("Name", visible(row.name)),
                Fact("Reason", visible(row.reason)),
                Fact("Door", row.door),
            ],
            "before": pane.json(row.before),
            "after": pane.json(row.after),
        }
