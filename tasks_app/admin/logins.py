"""Wrong logins and the waits that follow them. Operators with the permission can end a wait."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.readonly import ReadOnly, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import WrongLogins
from tasks_app.operators import logins

admin.site.login_form = logins.LoginForm


@admin.register(WrongLogins)
class WrongLoginsAdmin(ReadOnly[WrongLogins]):
    list_display = (
        "show_last_at",
        "kind",
        "show_value",
        "running",
        "total",
        "refused",
        "show_last_with",
        "show_locked_until",
        "show_right_at",
    )
    list_display_links = None
    ordering = ("-last_at",)
    sortable_by = ()
    actions = ("unlock",)

    def has_unlock_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="value")
    def show_value(self, row: WrongLogins) -> str:
        return reveal(row.value)

    @admin.display(description="newest with")
    def show_last_with(self, row: WrongLogins) -> str | None:
        return reveal(row.last_with) or None

    @admin.display(description="newest (UTC)")
    def show_last_at(self, row: WrongLogins) -> str:
        return format_time(row.last_at)

    @admin.display(description="locked until (UTC)")
    def show_locked_until(self, row: WrongLogins) -> str | None:
        return format_time(row.locked_until) or None

    @admin.display(description="right login after them (UTC)")
    def show_right_at(self, row: WrongLogins) -> str | None:
        return format_time(row.right_at) or None

    @admin.action(permissions=["unlock"], description="Unlock selected users and addresses")
    def unlock(self, request: HttpRequest, queryset: QuerySet[WrongLogins]) -> None:
        """End the waits and restore all tries."""
        for row in list(queryset):
            is_changed = any(logins.unlock(row.value, read_operator(request)).values())
            sentence = f"{reveal(str(row))}: unlocked{'' if is_changed else ' already'}."
            self.message_user(request, sentence, messages.SUCCESS if is_changed else messages.WARNING)
