"""Operators' accounts and groups, edited in Django's own forms. Accounts are deactivated, never deleted."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.readonly import read_operator, redirect_to_acts
from tasks_app.admin.text import format_time
from tasks_app.operators.audit import Change, record_acts

admin.site.unregister([User, Group])


class Audited(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Django's forms, with their changes recorded as acts instead of in Django's own log."""

    class Media:
        css = {"all": ["taskdesk/admin.css"]}

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(read_operator(request), "add", Change(obj))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(read_operator(request), "change", Change(obj, {}, {"changes": message}))

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(read_operator(request), "delete", *(Change(row) for row in queryset))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return redirect_to_acts(object_id)


@admin.register(User)
class OperatorAdmin(Audited, UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ("username", "show_last_login", "is_active", "is_staff", "is_superuser", "email")
    list_filter = ("is_active", "is_staff", "is_superuser")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Acts name their operator. A deleted name could be given to another person, so accounts are deactivated.
        return False

    @admin.display(description="last login (UTC)")
    def show_last_login(self, row: User) -> str | None:
        return format_time(row.last_login) or None


@admin.register(Group)
class OperatorGroupAdmin(Audited, GroupAdmin):
    pass
