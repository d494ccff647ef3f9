"""Who may call: tenants and principals to look at, API keys to look at and to revoke."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import AT_ONCE
from tasks_app.admin.readonly import M, ReadOnly, by, confirmation
from tasks_app.admin.text import moment
from tasks_app.models import ApiKey, Principal, Tenant
from tasks_app.webhooks.keys import revoke


class Dated(ReadOnly[M]):
    """Rows with the times of their making, their end and their revoking."""

    @admin.display(description="created (UTC)")
    def created(self, row: Any) -> str:
        return moment(row.created_at)

    @admin.display(description="expires (UTC)")
    def expires(self, row: Any) -> str | None:
        return moment(row.expires_at) or None

    @admin.display(description="revoked (UTC)")
    def revoked(self, row: Any) -> str | None:
        return moment(row.revoked_at) or None


@admin.register(Tenant)
class TenantAdmin(Dated[Tenant]):
    list_display = ("name", "created")
    fields = list_display
    ordering = ("name",)


@admin.register(Principal)
class PrincipalAdmin(Dated[Principal]):
    list_display = ("name", "created", "tenant")
    fields = list_display
    list_select_related = ("tenant",)
    ordering = ("name",)


@admin.register(ApiKey)
class ApiKeyAdmin(Dated[ApiKey]):
    list_display = ("created", "name", "revoked", "expires", "prefix", "principal", "scopes")
    list_display_links = ("name",)
    fields = list_display
    list_select_related = ("principal",)
    ordering = ("-id",)
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.action(permissions=["revoke"], description="Revoke selected API keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Ends the keys from their next use on; there is no way back."""
        keys = list(queryset.filter(revoked_at=None).select_related("principal")[: AT_ONCE + 1])
        if len(keys) > AT_ONCE:
            self.message_user(request, f"At most {AT_ONCE} keys at once: nothing was done.", messages.ERROR)
            return None
        if not keys:
            self.message_user(request, "These keys are revoked already.", messages.WARNING)
            return None
        if request.POST.get("post") != "yes":
            return confirmation(
                self,
                request,
                [(str(key.pk), f"{key} of {key.principal}") for key in keys],
                [f"{key} of {key.principal}" for key in keys],
                action="revoke",
                title=f"Revoke {counted(len(keys))}?",
                warning="Whoever uses them is refused from now on, and webhooks registered with them get nothing more. "
                "A revoked key cannot be brought back.",
            )
        count, confirmed = 0, set(request.POST.getlist(ACTION_CHECKBOX_NAME))
        for key in keys:
            if str(key.pk) in confirmed:
                count += revoke(key, by(request)) is not None
        self.message_user(request, f"Revoked {counted(count)}.", messages.SUCCESS)
        return None


def counted(count: int) -> str:
    return f"{count} API key" if count == 1 else f"{count} API keys"
