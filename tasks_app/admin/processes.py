"""Processes: which ones run, how far their clocks are off, and what troubles they report."""

import orjson
from django.contrib import admin

from tasks_app.admin.readonly import ReadOnly
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import Process


@admin.register(Process)
class ProcessAdmin(ReadOnly[Process]):
    list_display = (
        "show_seen_at",
        "role",
        "show_troubles",
        "show_started_at",
        "show_ended_at",
        "version",
        "clock_off",
        "lost",
        "lag",
        "name",
    )
    list_display_links = None
    ordering = ("-seen_at",)
    sortable_by = ()

    @admin.display(description="started (UTC)")
    def show_started_at(self, row: Process) -> str:
        return format_time(row.started_at)

    @admin.display(description="seen (UTC)")
    def show_seen_at(self, row: Process) -> str:
        return format_time(row.seen_at)

    @admin.display(description="ended (UTC)")
    def show_ended_at(self, row: Process) -> str | None:
        return format_time(row.ended_at) or None

    @admin.display(description="troubles")
    def show_troubles(self, row: Process) -> str | None:
        return reveal("; ".join(orjson.loads(row.troubles))) or None
