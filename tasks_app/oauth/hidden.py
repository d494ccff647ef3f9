"""Keeps the tables of django-oauth-toolkit out of the admin. That of clients is ours."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest


class HiddenAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """An admin that shows and changes no rows."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        return False

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
