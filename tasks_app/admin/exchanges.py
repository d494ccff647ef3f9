"""Calls and their answers: found by any id, shown side by side."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html

from tasks_app import lookup, responses
from tasks_app.admin.paging import CreatedFilter, ExactFilter, RecentFilter, held
from tasks_app.admin.readonly import BROKEN, Fact, LogTable, link
from tasks_app.admin.text import Pane, duration, moment, size, visible
from tasks_app.models import Exchange, ExchangeBody

BATCH = 100
"""Members of the same HTTP call that are listed."""
UNANSWERED = "no answer recorded"
STATUSES = (200, 204, 400, 401, 403, 404, 405, 408, 413, 415, 429, 500, 503)
"""All that the doors give to calls."""


class OutcomeFilter(ExactFilter):
    title = parameter_name = "outcome"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [*((outcome, outcome) for outcome in Exchange.OUTCOMES), ("none", UNANSWERED)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(outcome="") if self.value() == "none" else super().queryset(request, queryset)


class StatusFilter(ExactFilter):
    title = "HTTP status"
    parameter_name = "http_status"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(str(status), str(status)) for status in STATUSES]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        if not (value.isascii() and value.isdigit() and len(value) == 3):
            return queryset
        return queryset.filter(http_status=int(value))


class DialectFilter(RecentFilter):
    title = parameter_name = "dialect"


class DoorFilter(RecentFilter):
    title = parameter_name = "door"


class MethodFilter(RecentFilter):
    title = parameter_name = "method"


class CallerFilter(RecentFilter):
    title = "caller"
    parameter_name = "caller__name"


@admin.register(Exchange)
class ExchangeAdmin(LogTable[Exchange]):
    list_display = ("id", "shown_method", "door", "dialect", "shown_caller", "shown_outcome", "code", "took", "time")
    list_filter = (OutcomeFilter, DoorFilter, DialectFilter, MethodFilter, StatusFilter, CallerFilter, CreatedFilter)
    list_select_related = related = ("caller", "tenant")
    search_help_text = (
        "An exact rpc id, request id, task id or exchange id. A context id is found among tasks, a trace id nowhere."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Exchange], search_term: str
    ) -> tuple[QuerySet[Exchange], bool]:
        return (lookup.exchanges(search_term, queryset) if search_term.strip() else queryset), False

    @admin.display(description="method")
    def shown_method(self, row: Exchange) -> str | None:
        return visible(row.method) or None

    @admin.display(description="caller")
    def shown_caller(self, row: Exchange) -> str | None:
        return visible(row.caller.name) if row.caller else None

    @admin.display(description="outcome")
    def shown_outcome(self, row: Exchange) -> str:
        return format_html('<span class="td-mark td-{}">{}</span>', row.outcome or "none", row.outcome or UNANSWERED)

    @admin.display(description="duration")
    def took(self, row: Exchange) -> str | None:
        return duration(row.duration_us) or None

    @admin.display(description="time (UTC)")
    def time(self, row: Exchange) -> str:
        return moment(row.created_at)

    def page(self, request: HttpRequest, row: Exchange) -> dict[str, Any]:
        body = ExchangeBody.objects.filter(pk=row.pk).first()
        asked, answered = Pane(), Pane()
        try:
            answer = responses.response_text(row) if row.outcome else ""
        except BROKEN:
            answer = ""
        others = Exchange.objects.exclude(request_id="").filter(request_id=row.request_id).exclude(pk=row.pk)
        members, more = held(others.select_related("caller").order_by("-id"), BATCH)
        return {
            "verdict": verdict(row),
            "mark": row.outcome or "none",
            "facts": facts(row),
            "request_text": asked.json(body.request if body else ""),
            "request_cut": asked.cut,
            "response": answered.json(answer),
            "response_cut": answered.cut,
            "silence": silence(row),
            "members": [member_line(member) for member in members],
            "more_members": BATCH if more else 0,
        }


def verdict(row: Exchange) -> str:
    """Return the outcome of the call in words."""
    match row.outcome:
        case "":
            return "No answer recorded"
        case "error" | "refused":
            said = [f"code {row.code}"] if row.code is not None else []
            said += [f"HTTP {row.http_status}"] if row.http_status is not None else []
            return f"{row.outcome.capitalize()}: {', '.join(said) or 'without a code'}"
        case "broken":
            return f"Broken off: code {row.code}. Its headers were out; the connection was ended without this answer"
        case "stream":
            return f"Streamed: {row.frames} {'frame' if row.frames == 1 else 'frames'}"
        case "notified":
            return "Notification: the work was done, no answer is sent"
        case "left":
            return "The caller left before its answer was due; the task went on"
        case _:
            return "Answered"


def silence(row: Exchange) -> str:
    """Return the sentence in place of an answer without text."""
    return {
        "": "No answer recorded.",
        "notified": "A notification gets no answer.",
        "left": "Nobody was there to be answered.",
    }.get(row.outcome, "The answer was not kept, and cannot be derived any more.")


def facts(row: Exchange) -> list[Fact]:
    """The head of the page."""
    stretch = "" if row.last_seq is None else f"up to {row.last_seq}"
    if row.first_seq is not None:
        stretch = f"{row.first_seq} … {row.last_seq}"
    rpc_id = "" if row.rpc_id is None else visible(row.rpc_id)
    return [
        Fact("Method", visible(row.method)),
        Fact("Outcome", row.outcome or UNANSWERED),
        Fact("Code", "" if row.code is None else str(row.code)),
        Fact("HTTP status", "" if row.http_status is None else str(row.http_status)),
        Fact("Time (UTC)", moment(row.created_at)),
        Fact("Duration", duration(row.duration_us)),
        Fact("RPC id", f"{rpc_id} ({row.rpc_id_type})".strip()),
        Fact("Request id", visible(row.request_id or row.id)),
        Fact("Exchange id", row.id),
        Fact("Caller", visible(row.caller.name) if row.caller else ""),
        Fact("Tenant", visible(row.tenant.name) if row.tenant else ""),
        Fact("Task", visible(row.task_id or ""), link("task", row.task_id) if row.task_id else ""),
        Fact("Context", visible(row.context_id or "")),
        Fact("Trace", visible(row.trace)),
        Fact("Dialect", visible(row.dialect)),
        Fact("Version asked for", visible(row.version)),
        Fact("Door", visible(row.door)),
        Fact("Request size", size(row.request_bytes)),
        Fact("Response size", size(row.response_bytes)),
        Fact("Frames", str(row.frames)),
        Fact("Task events", stretch),
    ]


def member_line(row: Exchange) -> dict[str, str]:
    """An exchange as a line of a table on some page; its caller must have been selected."""
    return {
        "id": row.id,
        "href": link("exchange", row.id),
        "method": visible(row.method),
        "rpc_id": visible(row.rpc_id or ""),
        "caller": visible(row.caller.name) if row.caller else "",
        "mark": row.outcome or "none",
        "outcome": verdict(row),
        "duration": duration(row.duration_us),
        "time": moment(row.created_at),
    }
