"""Budgets of tenants and principals: listed with the tasks that hold reservations, set and reset."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from a2a.money import parse_usd, show_usd
from tasks_app.admin.acting import act_on_each
from tasks_app.admin.readonly import ReadOnly, link, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import Budget, Principal, Reservation, Tenant
from tasks_app.operators import reach
from tasks_app.operators.audit import Operator
from tasks_app.operators.budgets import describe, remove_budget, reset_budget, set_budget
from tasks_app.operators.texts import check_printable

MOST_TASKS = 20
"""Tasks with a reservation that the page of a budget shows, the newest ones."""


class BudgetForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A budget with its amount in dollars."""

    dollars = forms.CharField(label="Amount (USD)", help_text="Digits with at most six after the point, such as 0.50.")
    reason = forms.CharField(
        max_length=255, required=False, validators=[check_printable], help_text="Recorded with the act."
    )

    class Meta:
        model = Budget
        fields = ("tenant", "principal", "period")

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        if "principal" in self.fields:
            self.fields["principal"].required = False
        if self.instance.pk:
            self.initial["dollars"] = show_usd(self.instance.amount)

    def clean_dollars(self) -> int:
        """Return the amount in millionths. Raises ValidationError."""
        try:
            return parse_usd(self.cleaned_data["dollars"].strip())
        except ValueError as error:
            raise ValidationError(f"The amount {error}.") from None

    def clean(self) -> dict[str, Any]:
        """Return the values. Raises ValidationError for a principal of another tenant."""
        values = super().clean() or {}
        principal, tenant = values.get("principal"), values.get("tenant")
        if principal is not None and tenant is not None and principal.tenant != tenant:
            raise ValidationError(f"The principal {principal} is not of this tenant.")
        return values


@admin.register(Budget)
class BudgetAdmin(ReadOnly[Budget]):
    form = BudgetForm
    list_display = ("__str__", "show_amount", "period", "show_reserved", "show_spent", "show_left", "show_resets_at")
    list_select_related = ("tenant", "principal")
    ordering = ("-pk",)
    search_fields = ("principal__name", "tenant__name")
    search_help_text = "A part of the name of the principal, or of the tenant's."
    sortable_by = ()
    readonly_fields = ("show_reserved", "show_spent", "show_left", "show_resets_at", "show_tasks")
    autocomplete_fields = ()
    raw_id_fields = ("principal",)
    actions = ("reset", "remove")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("tasks_app.change_budget"))

    def has_change_permission(self, request: HttpRequest, obj: Budget | None = None) -> bool:
        return bool(request.user.has_perm("tasks_app.change_budget"))

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    def get_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        amounts = self.readonly_fields if obj else ()
        return ("tenant", "principal", "dollars", "period", "reason", *amounts)

    def get_readonly_fields(self, request: HttpRequest, obj: Budget | None = None) -> Any:
        # A budget keeps its holder: its reservations belong to that holder's tasks.
        return (*self.readonly_fields, *(("tenant", "principal") if obj else ()))

    def save_model(self, request: HttpRequest, obj: Budget, form: Any, change: bool) -> None:
        """Set the budget by the function that the command calls, which records the act."""
        if not reach.may_write(request.user, obj.tenant.name):
            raise PermissionDenied(f"{reach.explain_refusal(request.user, obj.tenant.name)}.")
        holder = obj.principal or obj.tenant
        saved = set_budget(holder, form.cleaned_data["dollars"], form.cleaned_data["period"], read_operator(request))
        obj.pk = saved.pk

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Write no entry of Django's own log: the act is recorded."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Write no entry of Django's own log: the act is recorded."""

    @admin.display(description="amount (USD)")
    def show_amount(self, row: Budget) -> str:
        return show_usd(row.amount)

    @admin.display(description="reserved (USD)")
    def show_reserved(self, row: Budget) -> str:
        return show_usd(row.reserved)

    @admin.display(description="spent (USD)")
    def show_spent(self, row: Budget) -> str:
        return str(describe(row)["spent"])

    @admin.display(description="left (USD)")
    def show_left(self, row: Budget) -> str:
        return str(describe(row)["left"])

    @admin.display(description="begins anew (UTC)")
    def show_resets_at(self, row: Budget) -> str | None:
        return format_time(row.resets_at) or None

    @admin.display(description="tasks with reservations")
    def show_tasks(self, row: Budget) -> SafeString | None:
        newest = Reservation.objects.filter(budget=row).order_by("-task_id")[:MOST_TASKS]
        lines = [(link("task", one.task_id), reveal(one.task_id), show_usd(one.amount)) for one in newest]
        return format_html_join("\n", '<div><a href="{}">{}</a> {} USD</div>', lines) or None

    @admin.action(permissions=["act"], description="Set what is spent to zero")
    def reset(self, request: HttpRequest, queryset: QuerySet[Budget]) -> HttpResponse | None:
        """Set what budgets have spent to zero, after confirmation."""
        warning = "What their tasks have cost so far no longer counts. Reservations of unfinished tasks stay."
        return self._act(request, queryset, "reset", reset_budget, warning)

    @admin.action(permissions=["act"], description="Remove selected budgets")
    def remove(self, request: HttpRequest, queryset: QuerySet[Budget]) -> HttpResponse | None:
        """Remove budgets after confirmation, so that nothing limits their holders any more."""
        warning = "From then on nothing limits what the tasks of these holders cost. What was spent is forgotten."
        return self._act(request, queryset, "remove", remove_budget, warning)

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[Budget],
        name: str,
        verb: Callable[[Tenant | Principal, Operator], Any],
        warning: str,
    ) -> HttpResponse | None:
        """Perform the verb on the holder of each budget. A budget that was removed meanwhile is not changed."""

        def change(budget: Budget, by: Operator) -> bool:
            verb(budget.principal or budget.tenant, by)
            return True

        rows = queryset.select_related("tenant", "principal__tenant")
        return act_on_each(self, request, rows, name, change, describe=_describe, warning=warning)


def _describe(budget: Budget) -> str:
    return reveal(str(budget))
