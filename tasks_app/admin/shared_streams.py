"""Shared streams: each with its participants and its newest chunks. Operators close, pause and resume them."""

import re
from typing import Any

import orjson
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from a2a.dialects.json.json_1_0 import decode_part
from tasks_app.admin.acting import ActionTable, format_count
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import format_owner, format_time, reveal
from tasks_app.admin.timeline import quote_parts
from tasks_app.models import Chunk, Participant, SharedStream
from tasks_app.operations import shared_stream_acts as acts
from tasks_app.operators.damage import BROKEN
from tasks_app.shared_streams.details import page_of
from tasks_app.webhooks import one_by_one

CHUNKS = 200
"""Chunks of a page."""
NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)


class StreamStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return list(SharedStream.STATES)


@admin.register(SharedStream)
class SharedStreamAdmin(ActionTable[SharedStream]):
    list_display = ("show_created_at", "show_state", "show_owner", "last_seq", "show_active_at", "show_reason", "id")
    list_select_related = ("owner", "tenant")
    list_filter = (StreamStateFilter,)
    related = ("owner", "tenant")
    search_columns = ("pk",)
    search_help_text = "An exact id of a shared stream."
    actions = ("close", "pause", "resume")

    @admin.display(description="newest chunk (UTC)")
    def show_active_at(self, row: SharedStream) -> str:
        return format_time(row.active_at)

    @admin.display(description="reason")
    def show_reason(self, row: SharedStream) -> str | None:
        return reveal(row.reason[:100]) or None

    def build_page(self, request: HttpRequest, row: SharedStream) -> dict[str, Any]:
        participants = Participant.objects.filter(stream_id=row.pk).order_by("pk")
        before = request.GET.get("before", "")
        chunks, older = page_of(row.pk, int(before) if NUMBER.fullmatch(before) else None, CHUNKS)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": build_facts(row),
            "participants": [(reveal(one.name), "account" if one.principal_id else "agent") for one in participants],
            "chunks": [_build_chunk(chunk) for chunk in chunks],
            "older": older,
            "has_newer": not chunks or chunks[-1].seq < row.last_seq,
        }

    def summarize(self, rows: list[SharedStream]) -> list[str]:
        return [format_count(self, len(rows))]

    @admin.action(permissions=["act"], description="Close selected shared streams")
    def close(self, request: HttpRequest, queryset: QuerySet[SharedStream]) -> HttpResponse | None:
        return self._act(request, queryset, "close", "Closed", "They accept no more messages. This cannot be undone.")

    @admin.action(permissions=["act"], description="Pause selected shared streams")
    def pause(self, request: HttpRequest, queryset: QuerySet[SharedStream]) -> HttpResponse | None:
        return self._act(request, queryset, "pause", "Paused", "They accept no messages until they are resumed.")

    @admin.action(permissions=["act"], description="Resume selected shared streams")
    def resume(self, request: HttpRequest, queryset: QuerySet[SharedStream]) -> HttpResponse | None:
        return self._act(request, queryset, "resume", "Resumed", "Their participants may send again.")

    def _act(
        self, request: HttpRequest, rows: QuerySet[SharedStream], verb: str, success: str, warning: str
    ) -> HttpResponse | None:
        title = f"{verb.capitalize()} these shared streams?"
        act = one_by_one(acts.ACTS[verb])
        return self.act(request, rows, verb, act, title=title, warning=warning, success=success)


def build_facts(row: SharedStream) -> list[Fact]:
    """Return the facts at the top of the page."""
    return [
        Fact("Reason for the state", reveal(row.reason)),
        Fact("Begun by", format_owner(row)),
        Fact("Chunks", str(row.last_seq)),
        Fact("Characters", f"{row.size:,}"),
        Fact("Begun (UTC)", format_time(row.created_at)),
        Fact("Newest chunk (UTC)", format_time(row.active_at)),
        Fact("Closed (UTC)", format_time(row.closed_at)),
        Fact("Metadata", reveal(row.metadata or "")),
    ]


def _build_chunk(chunk: Chunk) -> dict[str, Any]:
    """Return a row of the table of chunks, with the beginning of its text and a link to its task."""
    task = format_html('<a href="{}">{}</a>', link("task", chunk.task_id), chunk.task_seq) if chunk.task_id else ""
    return {
        "seq": chunk.seq,
        "time": format_time(chunk.created_at),
        "author": reveal(chunk.author),
        "role": chunk.role,
        "text": reveal(_quote(chunk)),
        "mark": chunk.state or ("last" if chunk.is_last else ""),
        "task": task,
    }


def _quote(chunk: Chunk) -> str:
    """Return the beginning of the text of a chunk, or the stored text as it is if it is damaged."""
    try:
        return quote_parts(tuple(decode_part(part) for part in orjson.loads(chunk.parts)))
    except BROKEN:
        return chunk.parts[:100]
