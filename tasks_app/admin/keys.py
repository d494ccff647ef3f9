"""Callers: tenants, principals and API keys are shown, and keys can be rotated and revoked."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tasks_app.admin.acting import MAX_SELECTED, describe_too_many, format_count
from tasks_app.admin.making import MakesKeys
from tasks_app.admin.readonly import M, ReadOnly, confirm, read_operator
from tasks_app.admin.text import format_time
from tasks_app.limits.stored import KINDS
from tasks_app.models import ApiKey, Principal, Tenant
from tasks_app.operators.keys import MOST_OVERLAP, rotate_key
from tasks_app.operators.refusals import sentence_of
from tasks_app.operators.removals import RowRemoved, watching
from tasks_app.operators.stored import amounts_of_principal
from tasks_app.webhooks.keys import revoke


class DatedTable(ReadOnly[M]):
    """The base of tables with times of creation, expiry and revocation."""

    @admin.display(description="created (UTC)")
    def show_created_at(self, row: Any) -> str:
        return format_time(row.created_at)

    @admin.display(description="expires (UTC)")
    def show_expires_at(self, row: Any) -> str | None:
        return format_time(row.expires_at) or None

    @admin.display(description="revoked (UTC)")
    def show_revoked_at(self, row: Any) -> str | None:
        return format_time(row.revoked_at) or None


@admin.register(Tenant)
class TenantAdmin(DatedTable[Tenant]):
    list_display = ("name", "show_created_at")
    fields = list_display
    search_fields = ("name",)
    search_help_text = "A part of a name."
    ordering = ("name",)


@admin.register(Principal)
class PrincipalAdmin(DatedTable[Principal]):
    list_display = ("name", "show_created_at", "tenant")
    fields = (*list_display, "show_stored")
    search_fields = ("name", "tenant__name")
    search_help_text = "A part of the name, or of the tenant's."
    list_select_related = ("tenant",)
    ordering = ("name",)

    @admin.display(description="stored bytes")
    def show_stored(self, row: Principal) -> str:
        amounts = amounts_of_principal(row)
        most = f"{amounts['most']:,}" if amounts["most"] else "any number"
        kinds = ", ".join(f"{amounts[kind]:,} in {kind.replace('_', ' ')}" for kind in KINDS if amounts[kind])
        return f"{amounts['bytes']:,} of {most}" + (f": {kinds}" if kinds else "")


class KeyOverlap(forms.Form):
    """The field of a rotation."""

    overlap_hours = forms.FloatField(
        min_value=0, max_value=MOST_OVERLAP, initial=24, help_text="Hours for which the old key stays valid."
    )


@admin.register(ApiKey)
class ApiKeyAdmin(MakesKeys, DatedTable[ApiKey]):
    list_display = (
        "show_created_at",
        "name",
        "show_revoked_at",
        "show_expires_at",
        "prefix",
        "principal",
        "scopes",
        "language",
        "networks",
        "show_last_used_at",
    )
    list_display_links = ("name",)
    fields = list_display
    list_select_related = ("principal",)
    ordering = ("-id",)
    search_fields = ("name", "prefix", "principal__name", "principal__tenant__name")
    search_help_text = "A part of the name, of the prefix, of the principal or of its tenant."
    actions = ("revoke", "rotate")

    @admin.display(description="last used (UTC)")
    def show_last_used_at(self, row: ApiKey) -> str | None:
        return format_time(row.last_used_at) or None

    def has_rotate_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request) and request.user.has_perm("tasks_app.add_apikey")

    @admin.action(permissions=["rotate"], description="Rotate the selected API key")
    def rotate(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Make a key with the rights of another after confirmation, and show it once. The other has an overlap."""
        keys = list(queryset.select_related("principal")[:2])
        if len(keys) != 1:
            self.message_user(request, "Select one key to rotate.", messages.ERROR)
            return None
        (old,) = keys
        name = f"{old} of {old.principal}"
        fields = KeyOverlap(request.POST if request.POST.get("post") == "yes" else None)
        if not fields.is_valid():
            return confirm(
                self,
                request,
                [(str(old.pk), name)],
                [name],
                action="rotate",
                title="Rotate this key?",
                warning="A new key with the same rights is made and shown once. This one expires after the overlap, "
                "or at its own end if that is earlier. Its webhooks go on with the new key.",
                harmless=True,
                form=fields,
            )
        try:
            with watching(old):
                _, key = rotate_key(read_operator(request), old, fields.cleaned_data["overlap_hours"])
                old.refresh_from_db()
        except ValueError as error:
            self.message_user(request, sentence_of(error), messages.ERROR)
            return None
        except RowRemoved as error:
            self.message_user(request, str(error), messages.ERROR)
            return None
        context = self.admin_site.each_context(request) | {"title": "A new key", "opts": self.opts, "media": self.media}
        context |= {"key": key, "old": name, "end": format_time(old.expires_at)}
        return TemplateResponse(request, "admin/tasks_app/new_key.html", context)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.action(permissions=["revoke"], description="Revoke selected API keys")
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> HttpResponse | None:
        """Revoke keys after confirmation. A revoked key is refused at its next use, and cannot be restored."""
        keys = list(queryset.filter(revoked_at=None).select_related("principal")[: MAX_SELECTED + 1])
        if len(keys) > MAX_SELECTED:
            self.message_user(request, describe_too_many(self), messages.ERROR)
            return None
        if not keys:
            self.message_user(request, "All selected keys are already revoked.", messages.WARNING)
            return None
        if request.POST.get("post") != "yes":
            return confirm(
                self,
                request,
                [(str(key.pk), f"{key} of {key.principal}") for key in keys],
                [f"{key} of {key.principal}" for key in keys],
                action="revoke",
                title=f"Revoke {format_count(self, len(keys))}?",
                warning="Calls with these keys are refused from now on, and webhooks registered with them get no more "
                "deliveries. A revoked key cannot be restored.",
            )
        count, confirmed_ids = 0, set(request.POST.getlist(ACTION_CHECKBOX_NAME))
        for key in keys:
            if str(key.pk) in confirmed_ids:
                count += revoke(key, read_operator(request)) is not None
        self.message_user(request, f"Revoked {format_count(self, count)}.", messages.SUCCESS)
        return None
