"""Rate limits of callers and tenants: shown, and removed by an action. Commands and the operators' API set them."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.readonly import ReadOnly, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import RateLimit
from tasks_app.operators import rate_limits


@admin.register(RateLimit)
class RateLimitAdmin(ReadOnly[RateLimit]):
    list_display = ("show_time", "tenant", "show_principal", "show_rate", "burst")
    list_display_links = None
    list_select_related = ("tenant", "principal")
    ordering = ("-id",)
    sortable_by = ()
    actions = ("remove",)

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="time (UTC)")
    def show_time(self, row: RateLimit) -> str:
        return format_time(row.changed_at)

    @admin.display(description="principal")
    def show_principal(self, row: RateLimit) -> str:
        return reveal(row.principal.name) if row.principal else "all together"

    @admin.display(description="units a minute")
    def show_rate(self, row: RateLimit) -> str:
        return str(row.per_minute) if row.per_minute else "no limit"

    @admin.action(permissions=["remove"], description="Remove selected rate limits")
    def remove(self, request: HttpRequest, queryset: QuerySet[RateLimit]) -> None:
        """Remove limits, so that the settings apply again."""
        for row in list(queryset):
            if rate_limits.remove_limit(row, read_operator(request)):
                self.message_user(request, f"{reveal(str(row))}: removed.", messages.SUCCESS)
