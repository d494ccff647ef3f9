"""Rate limits of callers and tenants: shown, set by a form, and removed by an action."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.making import Making, Reason, check_tenant
from tasks_app.admin.readonly import ReadOnly, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import RateLimit
from tasks_app.operators import rate_limits


class NewLimit(Reason):
    """The form of a rate limit."""

    tenant = forms.CharField(max_length=64, initial="default")
    principal = forms.CharField(
        max_length=64, required=False, help_text="A principal of the tenant; empty: the tenant as a whole."
    )
    per_minute = forms.IntegerField(
        min_value=0,
        max_value=rate_limits.MOST,
        label="Units a minute",
        help_text="Units of cost; 0: no limit.",
    )
    burst = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=rate_limits.MOST,
        help_text="Most units at once; empty: those of a minute.",
    )
    field_order = ("tenant", "principal", "per_minute", "burst", "reason")


@admin.register(RateLimit)
class RateLimitAdmin(Making, ReadOnly[RateLimit]):
    making_form = NewLimit
    making_verb = "Set"
    list_display = ("show_time", "tenant", "show_principal", "show_rate", "burst")
    list_display_links = None
    list_select_related = ("tenant", "principal")
    ordering = ("-id",)
    search_fields = ("principal__name", "tenant__name")
    search_help_text = "A part of the name of the principal, or of the tenant's."
    sortable_by = ()
    actions = ("remove",)

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        check_tenant(request, values["tenant"])
        values["principal"] = values["principal"] or None
        return rate_limits.set_limit(read_operator(request), **values), ""

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
    def remove(self, request: HttpRequest, queryset: QuerySet[RateLimit]) -> HttpResponse | None:
        """Remove limits after confirmation, so that the settings apply again."""
        return act_on_each(
            self,
            request,
            queryset.select_related("tenant", "principal__tenant"),
            "remove",
            rate_limits.remove_limit,
            describe=lambda row: reveal(str(row)),
            warning="The default of the settings then holds for these callers, and nothing for these tenants.",
        )
