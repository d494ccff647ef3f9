"""Permissions: a form adds one, an action removes some, and each change is an act."""

from typing import Any, cast

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.readonly import read_operator
from tasks_app.callers.rules import KINDS, Kind, check_pattern
from tasks_app.models import Permission
from tasks_app.operators import permissions, reach
from tasks_app.operators.texts import check_printable


class PermissionForm(forms.ModelForm):  # type: ignore[type-arg]  # not generic at run time
    """A permission of a principal, or of a whole tenant."""

    kind = forms.ChoiceField(choices=[(kind, kind) for kind in KINDS])
    allows = forms.TypedChoiceField(
        choices=[("yes", "allow"), ("no", "deny")], coerce=lambda text: text == "yes", label="effect"
    )
    reason = forms.CharField(
        max_length=255, required=False, validators=[check_printable], help_text="Recorded with the act."
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "tenant" in self.fields:
            self.fields["tenant"].required = False

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if {"kind", "pattern"} <= values.keys():
            try:
                check_pattern(values["kind"], values["pattern"])
            except ValueError as error:
                self.add_error("pattern", str(error))
        principal, tenant = values.get("principal"), values.get("tenant")
        if principal and tenant and principal.tenant != tenant:
            raise forms.ValidationError(f"The principal {principal} is not of this tenant.")
        if principal:
            values["tenant"] = principal.tenant
        elif not tenant:
            raise forms.ValidationError("Choose a principal, or a tenant for all of its principals.")
        try:
            permissions.check_room(principal or values["tenant"], values.get("kind", ""), values.get("pattern", ""))
        except ValueError as error:
            raise forms.ValidationError(str(error)) from None
        return values


@admin.register(Permission)
class PermissionAdmin(DatedTable[Permission]):
    form = PermissionForm
    list_display = ("show_created_at", "show_effect", "kind", "pattern", "principal", "tenant")
    list_display_links = ("pattern",)
    list_select_related = ("principal", "tenant")
    raw_id_fields = ("principal", "tenant")
    ordering = ("-id",)
    search_fields = ("pattern", "principal__name", "tenant__name")
    search_help_text = "A part of the pattern, of the principal or of its tenant."
    sortable_by = ()
    actions = ("remove",)

    @admin.display(description="effect")
    def show_effect(self, row: Permission) -> str:
        return row.effect

    def get_fields(self, request: HttpRequest, obj: Permission | None = None) -> tuple[str, ...]:
        return self.list_display if obj else ("principal", "tenant", "allows", "kind", "pattern", "reason")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.has_perm("tasks_app.add_permission"))

    def has_remove_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.is_active and request.user.has_perm("tasks_app.delete_permission"))

    def log_addition(self, *args: Any) -> None:  # type: ignore[override]  # set_permission() has recorded the act
        return None

    def save_model(self, request: HttpRequest, obj: Permission, form: Any, change: bool) -> None:
        if not reach.may_write(request.user, obj.tenant.name):
            raise PermissionDenied(f"{reach.explain_refusal(request.user, obj.tenant.name)}.")
        to = obj.principal or obj.tenant
        kind = cast("Kind", obj.kind)
        row = permissions.set_permission(to, kind, obj.pattern, allows=obj.allows, by=read_operator(request))
        obj.pk = row.pk

    @admin.action(permissions=["remove"], description="Remove selected permissions")
    def remove(self, request: HttpRequest, queryset: QuerySet[Permission]) -> HttpResponse | None:
        """Remove permissions after confirmation."""
        return act_on_each(
            self,
            request,
            queryset.select_related("principal", "tenant"),
            "remove",
            permissions.remove_permission,
            describe=lambda row: f"{row} for {row.principal or row.tenant}",
            warning="Without any permission of a kind, a principal may use every name of that kind.",
        )
