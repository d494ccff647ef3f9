"""Clients of our own OAuth server. They are added, and get new secrets, by command or through the operators' API."""

from collections.abc import Callable

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.text import format_time
from tasks_app.models import OAuthClient
from tasks_app.oauth import clients
from tasks_app.operators.audit import Operator


class OAuthClientAdmin(DatedTable[OAuthClient]):
    """The page of clients. The toolkit registers it, as its page of applications, if the OAuth server is on."""

    list_display = (
        "show_created_at",
        "name",
        "show_revoked_at",
        "show_disabled_at",
        "client_id",
        "principal",
        "scopes",
        "authorization_grant_type",
        "client_type",
    )
    list_display_links = ("name",)
    fields = (*list_display, "redirect_uris", "show_former_until")
    list_select_related = ("principal",)
    ordering = ("-id",)
    actions = ("disable", "enable", "revoke")

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="disabled (UTC)")
    def show_disabled_at(self, row: OAuthClient) -> str | None:
        return format_time(row.disabled_at) or None

    @admin.display(description="former secret until (UTC)")
    def show_former_until(self, row: OAuthClient) -> str | None:
        return format_time(row.former_until) or None

    @admin.action(permissions=["act"], description="Disable selected clients")
    def disable(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Refuse the clients and their tokens, until they are enabled."""
        warning = "These clients get no tokens, and calls with their tokens are refused, until you enable them again."
        return self._act(request, queryset, "disable", clients.disable, warning)

    @admin.action(permissions=["act"], description="Enable selected clients")
    def enable(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Accept the clients and their tokens again."""
        warning = "These clients get tokens again, and calls with their tokens are accepted."
        return self._act(request, queryset, "enable", clients.enable, warning)

    @admin.action(permissions=["act"], description="Revoke selected clients")
    def revoke(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Refuse the clients for ever, and delete their tokens."""
        warning = "These clients and their tokens are refused from now on. A revoked client cannot be restored."
        return self._act(request, queryset, "revoke", clients.revoke, warning)

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[OAuthClient],
        name: str,
        verb: Callable[[OAuthClient, Operator], bool],
        warning: str,
    ) -> HttpResponse | None:
        rows = queryset.select_related("principal__tenant")
        return act_on_each(
            self, request, rows, name, verb, describe=lambda row: f"{row} of {row.principal}", warning=warning
        )
