"""Refusals: how many calls of strangers were refused, by minute and address."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse

from tasks_app.admin.readonly import LogTable
from tasks_app.admin.text import format_time, reveal
from tasks_app.exchanges.refusals import address_of_search
from tasks_app.models import Refusals


@admin.register(Refusals)
class RefusalsAdmin(LogTable[Refusals]):
    list_display = ("show_minute", "show_address", "unauthenticated", "limited", "invalid", "recorded")
    list_display_links = None
    has_acts = False
    search_fields = ("address",)
    search_help_text = "An IP address. One of IPv6 finds the counts of its /64 network."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Refusals], search_term: str
    ) -> tuple[QuerySet[Refusals], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        return queryset.none() if "\0" in text else queryset.filter(address=address_of_search(text)), False

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Redirect to the list, which shows all columns."""
        return HttpResponseRedirect(reverse("admin:tasks_app_refusals_changelist"))

    @admin.display(description="minute (UTC)")
    def show_minute(self, row: Refusals) -> str:
        return format_time(row.minute)

    @admin.display(description="address")
    def show_address(self, row: Refusals) -> str:
        return reveal(row.address)
