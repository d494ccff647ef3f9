"""The usage history of zones: calls that execute tasks, by correlation id, channel and date."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html

from tasks_app import clock
from tasks_app.admin.filters import CreatedFilter, ListFilter, RecentFilter
from tasks_app.admin.readonly import LogTable, link
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import Usage
from tasks_app.operators import lookup

DAYS = 14
"""Days that the filter offers. It takes any other, too."""


class ChannelFilter(RecentFilter):
    title = parameter_name = "channel"

    @property
    def is_indexed(self) -> bool:
        return True


class DayFilter(ListFilter):
    """A filter by one day in UTC."""

    title = "day (UTC)"
    parameter_name = "day"
    is_closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        today = clock.now().date()
        days = [(today - timedelta(days=number)).isoformat() for number in range(DAYS)]
        return [(day, day) for day in days]

    @property
    def is_indexed(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None:
            return queryset
        try:
            start = datetime.combine(date.fromisoformat(self.value() or ""), datetime.min.time(), UTC)
            return lookup.in_window(queryset, "created_at", start, start + timedelta(days=1))
        except (ValueError, OverflowError):
            return queryset.none()


@admin.register(Usage)
class UsageAdmin(LogTable[Usage]):
    list_display = (
        "show_created_at",
        "show_correlation_id",
        "show_channel",
        "show_owner",
        "show_task",
        "outcome",
        "show_skipped",
    )
    list_display_links = None
    list_select_related = ("owner", "tenant")
    list_filter = (ChannelFilter, DayFilter, CreatedFilter)
    has_acts = False
    search_fields = ("correlation_id",)
    search_help_text = "An exact correlation id."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Usage], search_term: str
    ) -> tuple[QuerySet[Usage], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        return queryset.none() if "\0" in text else queryset.filter(correlation_id=text), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the list, which shows all columns."""
        return HttpResponseRedirect(reverse("admin:tasks_app_usage_changelist"))

    @admin.display(description="time (UTC)")
    def show_created_at(self, row: Usage) -> str:
        return format_time(row.created_at)

    @admin.display(description="correlation id")
    def show_correlation_id(self, row: Usage) -> str:
        return reveal(row.correlation_id)

    @admin.display(description="channel")
    def show_channel(self, row: Usage) -> str:
        return reveal(row.channel)

    @admin.display(description="task")
    def show_task(self, row: Usage) -> str | None:
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), row.task_id) if row.task_id else None

    @admin.display(description="skipped attachments")
    def show_skipped(self, row: Usage) -> str | None:
        return reveal(row.skipped[:200]) or None
