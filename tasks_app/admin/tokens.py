"""Tokens of operators: shown without their secrets, and revoked."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app.admin.keys import DatedTable
from tasks_app.admin.making import MakesTokens
from tasks_app.admin.readonly import read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import OperatorToken
from tasks_app.operators import tokens


@admin.register(OperatorToken)
class OperatorTokenAdmin(MakesTokens, DatedTable[OperatorToken]):
    list_display = (
        "show_created_at",
        "show_user",
        "name",
        "prefix",
        "administers",
        "show_used_at",
        "show_expires_at",
        "show_revoked_at",
    )
    list_display_links = None
    list_select_related = ("user",)
    ordering = ("-id",)
    sortable_by = ()
    actions = ("revoke",)

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="operator")
    def show_user(self, row: OperatorToken) -> str:
        return reveal(row.user.get_username())

    @admin.display(description="used (UTC)")
    def show_used_at(self, row: Any) -> str | None:
        return format_time(row.used_at) or None

    @admin.action(permissions=["revoke"], description="Revoke selected tokens")
    def revoke(self, request: HttpRequest, queryset: QuerySet[OperatorToken]) -> None:
        """Revoke tokens at once."""
        for row in queryset.select_related("user"):
            if tokens.revoke(row, read_operator(request)):
                self.message_user(request, f"{reveal(str(row))}: revoked.", messages.SUCCESS)
            else:
                self.message_user(request, f"{reveal(str(row))} was revoked before.", messages.WARNING)
