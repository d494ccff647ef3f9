"""Operators themselves: made and changed in Django's own forms, switched off instead of deleted."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.readonly import acts_of, by
from tasks_app.admin.text import moment
from tasks_app.operators.audit import Change, record_acts

admin.site.unregister([User, Group])


class WrittenDown(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """Django's forms, whose acts are kept with all others."""

    class Media:
        css = {"all": ["taskdesk/admin.css"]}

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        record_acts(by(request), "add", Change(obj))

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> None:  # type: ignore[override]  # the same
        record_acts(by(request), "change", Change(obj, {}, {"changes": message}))

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:  # type: ignore[override]  # the same
        record_acts(by(request), "delete", *(Change(row) for row in queryset))

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return acts_of(object_id)


@admin.register(User)
class OperatorAdmin(WrittenDown, UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    list_display = ("username", "seen", "is_active", "is_staff", "is_superuser", "email")
    list_filter = ("is_active", "is_staff", "is_superuser")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # A name that acted is not to be given to another person: take "active" away instead.
        return False

    @admin.display(description="last login (UTC)")
    def seen(self, row: User) -> str | None:
        return moment(row.last_login) or None


@admin.register(Group)
class OperatorGroupAdmin(WrittenDown, GroupAdmin):
    pass
