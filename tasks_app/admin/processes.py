"""Processes: which run, how their clocks stand, what troubles them."""

import orjson
from django.contrib import admin

from tasks_app.admin.readonly import ReadOnly
from tasks_app.admin.text import moment, visible
from tasks_app.models import Process


@admin.register(Process)
class ProcessAdmin(ReadOnly[Process]):
    list_display = ("seen", "role", "sentences", "started", "ended", "version", "clock_off", "lost", "lag", "name")
    list_display_links = None
    ordering = ("-seen_at",)
    sortable_by = ()

    @admin.display(description="started (UTC)")
    def started(self, row: Process) -> str:
        return moment(row.started_at)

    @admin.display(description="seen (UTC)")
    def seen(self, row: Process) -> str:
        return moment(row.seen_at)

    @admin.display(description="ended (UTC)")
    def ended(self, row: Process) -> str | None:
        return moment(row.ended_at) or None

    @admin.display(description="troubles")
    def sentences(self, row: Process) -> str | None:
        return visible("; ".join(orjson.loads(row.troubles))) or None
