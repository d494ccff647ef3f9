"""Wrong logins, and the waits that follow: looked at, and ended."""

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.readonly import ReadOnly, by
from tasks_app.admin.text import moment, visible
from tasks_app.models import WrongLogins
from tasks_app.operators import logins

admin.site.login_form = logins.LoginForm


@admin.register(WrongLogins)
class WrongLoginsAdmin(ReadOnly[WrongLogins]):
    list_display = ("last", "kind", "shown_value", "running", "total", "refused", "shown_with", "locked", "right")
    list_display_links = None
    ordering = ("-last_at",)
    sortable_by = ()
    actions = ("unlock",)

    def has_unlock_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="value")
    def shown_value(self, row: WrongLogins) -> str:
        return visible(row.value)

    @admin.display(description="newest with")
    def shown_with(self, row: WrongLogins) -> str | None:
        return visible(row.last_with) or None

    @admin.display(description="newest (UTC)")
    def last(self, row: WrongLogins) -> str:
        return moment(row.last_at)

    @admin.display(description="locked until (UTC)")
    def locked(self, row: WrongLogins) -> str | None:
        return moment(row.locked_until) or None

    @admin.display(description="right one after them (UTC)")
    def right(self, row: WrongLogins) -> str | None:
        return moment(row.right_at) or None

    @admin.action(permissions=["unlock"], description="Unlock selected users and addresses")
    def unlock(self, request: HttpRequest, queryset: QuerySet[WrongLogins]) -> None:
        """Give them all their tries back."""
        for row in list(queryset):
            logins.unlock(row.value, by(request))
            self.message_user(request, f"{visible(str(row))}: unlocked.", messages.SUCCESS)
