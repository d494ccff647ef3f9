"""Service accounts of tokens and certificates. They are registered by command or through the operators' API."""

from collections.abc import Callable

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.text import format_time
from tasks_app.callers.service_accounts import CERTIFICATE
from tasks_app.models import ServiceAccount
from tasks_app.operators import accounts
from tasks_app.operators.audit import Operator


@admin.register(ServiceAccount)
class ServiceAccountAdmin(DatedTable[ServiceAccount]):
    list_display = (
        "show_created_at",
        "subject",
        "show_disabled_at",
        "show_not_before",
        "issuer",
        "principal",
        "scopes",
        "language",
    )
    list_display_links = ("subject",)
    fields = list_display
    list_select_related = ("principal",)
    ordering = ("-id",)
    actions = ("disable", "enable", "refuse_former_tokens")

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="disabled (UTC)")
    def show_disabled_at(self, row: ServiceAccount) -> str | None:
        return format_time(row.disabled_at) or None

    @admin.display(description="tokens from (UTC)")
    def show_not_before(self, row: ServiceAccount) -> str | None:
        return format_time(row.not_before) or None

    @admin.action(permissions=["act"], description="Disable selected accounts")
    def disable(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Refuse the accounts until they are enabled."""
        warning = "Calls with their tokens and certificates are refused, until you enable them again."
        return self._act(request, queryset, "disable", accounts.disable, warning)

    @admin.action(permissions=["act"], description="Enable selected accounts")
    def enable(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Accept the accounts again."""
        warning = "Calls with their tokens and certificates are accepted again."
        return self._act(request, queryset, "enable", accounts.enable, warning)

    @admin.action(permissions=["act"], description="Refuse all tokens issued until now")
    def refuse_former_tokens(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Refuse the tokens that the accounts have now. New ones of their issuers are accepted."""
        warning = "Tokens that were issued until now are refused for ever. New ones are accepted."
        rows = queryset.exclude(issuer=CERTIFICATE)
        return self._act(request, rows, "refuse_former_tokens", accounts.set_not_before, warning)

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[ServiceAccount],
        name: str,
        verb: Callable[[ServiceAccount, Operator], bool],
        warning: str,
    ) -> HttpResponse | None:
        rows = queryset.select_related("principal__tenant")
        return act_on_each(self, request, rows, name, verb, warning=warning)
