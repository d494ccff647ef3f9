"""Operators' accounts and groups, edited in Django's own forms. Accounts are deactivated, never deleted."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.readonly import read_operator, redirect_to_acts
from tasks_app.admin.selection import Selecting
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import OperatorReach
from tasks_app.operators import reach, second_factor
from tasks_app.operators.audit import Change, Operator, record_acts
from tasks_app.operators.users import revoke_tokens

admin.site.unregister([User, Group])


class Audited(Selecting):
    """Django's forms, with their changes recorded as acts instead of in Django's own log."""

    class Media:
        css = {"all": ["taskdesk/admin.css"]}

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Return the rows for operators of all tenants, and none for others."""
        return reach.limit(request.user, super().get_queryset(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        return super().has_add_permission(request) and reach.read_reach(request.user).is_whole

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


class ReachInline(admin.StackedInline):  # type: ignore[type-arg]  # not generic at run time
    """The tenants and agents of an operator, in the form of the account."""

    model = OperatorReach
    filter_horizontal = ("tenants",)
    can_delete = True


@admin.register(User)
class OperatorAdmin(Audited, UserAdmin):  # type: ignore[type-arg]  # not generic at run time
    inlines = (ReachInline,)
    actions = ("reset_second_factor",)
    list_display = ("username", "show_last_login", "is_active", "is_staff", "is_superuser", "email")
    list_filter = ("is_active", "is_staff", "is_superuser")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Acts name their operator. A deleted name could be given to another person, so accounts are deactivated.
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Otherwise an administrator could become a superuser by the password of one.
        if obj is not None and obj.is_superuser and not getattr(request.user, "is_superuser", False):
            return False
        return super().has_change_permission(request, obj)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        # Roles are given by administrators, but only a superuser makes another, or gives single permissions.
        fields = super().get_readonly_fields(request, obj)
        return fields if getattr(request.user, "is_superuser", False) else (*fields, "is_superuser", "user_permissions")

    def log_change(self, request: HttpRequest, obj: User, message: Any) -> None:  # type: ignore[override]  # no LogEntry
        # Tokens end with the password, and with the account: it may be active again later.
        match = request.resolver_match
        is_new_password = match is not None and match.url_name == "auth_user_password_change"
        tokens = revoke_tokens(obj) if is_new_password or not obj.is_active else 0
        record_acts(read_operator(request), "change", Change(obj, {}, {"changes": message, "tokens": tokens}))

    @admin.action(permissions=["change"], description="Reset the second factor of selected operators")
    def reset_second_factor(self, request: HttpRequest, queryset: QuerySet[User]) -> HttpResponse | None:
        """Remove devices and tokens after confirmation, so that their operators enrol others at the next login."""

        def reset(user: User, by: Operator) -> bool:
            if is_allowed := self.has_change_permission(request, user):
                second_factor.reset(user, by)
            return is_allowed

        return act_on_each(
            self,
            request,
            queryset,
            "reset_second_factor",
            reset,
            describe=lambda user: reveal(user.username),
            warning="Their devices and tokens are removed, and each enrols another device at the next page. "
            "Only a superuser resets a superuser.",
        )

    @admin.display(description="last login (UTC)")
    def show_last_login(self, row: User) -> str | None:
        return format_time(row.last_login) or None


@admin.register(Group)
class OperatorGroupAdmin(Audited, GroupAdmin):
    pass
