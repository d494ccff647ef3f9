"""Exchanges: the list, its search by any id, and the page that shows a call next to its answer."""

from collections import Counter
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from a2a import languages
from tasks_app.admin.filters import CHOICES, RECENT, CreatedFilter, ExactFilter, RecentFilter, newest_visible
from tasks_app.admin.readonly import Fact, LogTable, link
from tasks_app.admin.text import Pane, format_duration, format_size, format_time, reveal
from tasks_app.database.keyset import fetch_page
from tasks_app.exchanges import responses
from tasks_app.models import Exchange, ExchangeBody, Task
from tasks_app.operators import lookup, reach
from tasks_app.operators.damage import BROKEN
from tasks_app.webhooks import with_files

BATCH = 100
"""Members of the same batch that a page lists."""
UNANSWERED = "no answer recorded"
TASK_GONE = "no such task"
UNAUTHENTICATED = "The bodies of calls without a valid key are not stored, on purpose."
STATUSES = (200, 204, 400, 401, 402, 403, 404, 405, 408, 409, 413, 415, 429, 500, 503, 504)
"""HTTP statuses that the doors return."""


class OutcomeFilter(ExactFilter):
    title = parameter_name = "outcome"
    unindexed = lookup.UNINDEXED_VALUES[Exchange, "outcome"]

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [*((outcome, outcome) for outcome in Exchange.OUTCOMES), ("none", UNANSWERED)]

    def column_value(self) -> str | None:
        return "" if self.value() == "none" else self.value()


class StatusFilter(ExactFilter):
    title = "HTTP status"
    parameter_name = "http_status"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(str(status), str(status)) for status in STATUSES]


class DialectFilter(RecentFilter):
    title = parameter_name = "dialect"


class DoorFilter(RecentFilter):
    title = parameter_name = "door"


class MethodFilter(RecentFilter):
    title = parameter_name = "method"


class CallerFilter(RecentFilter):
    """A filter by the name of a principal, which may have the tenant before it: several tenants may have the name."""

    title = "caller"
    parameter_name = "caller__name"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        rows = newest_visible(request, Exchange).values_list("caller__tenant__name", "caller__name")
        names = Counter(f"{tenant}/{name}" for tenant, name in rows[:RECENT] if name)
        return [(name, reveal(name)) for name, _ in names.most_common(CHOICES)]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset if value is None else lookup.owned_by(queryset, value, "caller_id")


class PeerFilter(ExactFilter):
    """A filter that is set by a link on an exchange's page. Offering addresses to choose from would cost a query."""

    title = "address"
    parameter_name = "peer"
    is_closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(value, reveal(value))] if (value := self.value()) else []


@admin.register(Exchange)
class ExchangeAdmin(LogTable[Exchange]):
    list_display = (
        "show_time",
        "show_outcome",
        "show_state",
        "show_method",
        "show_code",
        "show_caller",
        "show_duration",
        "show_rpc_id",
        "door",
        "dialect",
    )
    list_filter = (
        OutcomeFilter,
        DoorFilter,
        DialectFilter,
        MethodFilter,
        StatusFilter,
        CallerFilter,
        PeerFilter,
        CreatedFilter,
    )
    list_select_related = related = ("caller", "tenant")
    max_found = lookup.CANDIDATES
    has_acts = False
    search_help_text = (
        "An exact RPC id, request id, task id or exchange id, or the reference in an error message. "
        "Search the tasks for a context id. Trace ids cannot be searched."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Exchange], search_term: str
    ) -> tuple[QuerySet[Exchange], bool]:
        return (lookup.find_exchanges(search_term, queryset) if search_term.strip() else queryset), False

    def add_columns(self, request: HttpRequest, rows: list[Exchange]) -> None:
        tasks = reach.limit(request.user, Task.objects.all())
        states = lookup.read_states((row.task_id for row in rows), tasks)
        for row in rows:
            row.task_state = states.get(row.task_id or "", "")  # type: ignore[attr-defined]  # for the list alone

    @admin.display(description="task now")
    def show_state(self, row: Any) -> str | None:
        if not row.task_id:
            return None
        mark = mark_state(row.task_state)
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), mark) if row.task_state else mark

    @admin.display(description="code")
    def show_code(self, row: Exchange) -> str | None:
        return format_code(row) or None

    @admin.display(description="rpc id")
    def show_rpc_id(self, row: Exchange) -> str | None:
        return reveal(row.rpc_id or "") or None

    @admin.display(description="method")
    def show_method(self, row: Exchange) -> str | None:
        return reveal(row.method) or None

    @admin.display(description="caller")
    def show_caller(self, row: Exchange) -> str | None:
        return reveal(row.caller.name) if row.caller else None

    @admin.display(description="outcome")
    def show_outcome(self, row: Exchange) -> str:
        return mark_outcome(row)

    @admin.display(description="duration")
    def show_duration(self, row: Exchange) -> str | None:
        return format_duration(row.duration_us) or None

    @admin.display(description="time (UTC)")
    def show_time(self, row: Exchange) -> str:
        return format_time(row.created_at)

    def build_page(self, request: HttpRequest, row: Exchange) -> dict[str, Any]:
        body = ExchangeBody.objects.filter(pk=row.pk).first()
        request_pane, response_pane = Pane(), Pane()
        try:
            answer = with_files(responses.response_text(row), "") if row.outcome else ""
        except BROKEN:
            answer = ""
        others = Exchange.objects.exclude(request_id="").filter(request_id=row.request_id).exclude(pk=row.pk)
        others = reach.limit(request.user, others)  # callers choose request ids, so another tenant may have the same
        states = lookup.read_states([row.task_id], reach.limit(request.user, Task.objects.all()))
        state = states.get(row.task_id or "", "")
        members, more = fetch_page(others.select_related("caller").order_by("-id"), BATCH)
        return {
            "verdict": describe_outcome(row),
            "mark": row.outcome or "none",
            "task_href": link("task", row.task_id) if row.task_id and state else "",
            "task_mark": mark_state(state) if row.task_id else "",
            "facts": build_facts(row),
            "request_text": request_pane.show_json(body.request if body else ""),
            "request_cut": request_pane.is_cut,
            "response": response_pane.show_json(answer),
            "response_cut": response_pane.is_cut,
            "no_request": UNAUTHENTICATED if row.http_status == 401 else "The body of the request was not stored.",
            "no_response": explain_no_response(row),
            "members": [build_call(member) for member in members],
            "more_members": BATCH if more else 0,
        }


def mark_outcome(row: Exchange) -> str:
    """Return the outcome of the call as a mark. The present state of its task is another mark."""
    return format_html('<span class="td-mark td-{}">{}</span>', row.outcome or "none", row.outcome or UNANSWERED)


def mark_state(state: str) -> str:
    """Return the state of a task as a mark."""
    return format_html(
        '<span class="td-mark td-{}">{}</span>', state or "gone", state.replace("_", " ") if state else TASK_GONE
    )


def format_code(row: Exchange) -> str:
    """Return the error code of a call with its reason, such as -38009 UNAUTHENTICATED."""
    return (
        "" if row.code is None else f"{row.code} {languages.ALL.reason(row.code, row.dialect, row.http_status)}".strip()
    )


def describe_outcome(row: Exchange) -> str:
    """Return the outcome of the call in words."""
    match row.outcome:
        case "":
            return "No answer recorded"
        case "error" | "refused":
            numbers = [f"code {format_code(row)}"] if row.code is not None else []
            numbers += [f"HTTP {row.http_status}"] if row.http_status is not None else []
            return f"{row.outcome.capitalize()}: {', '.join(numbers) or 'without a code'}"
        case "broken":
            code = format_code(row)
            return f"Broken off: code {code}. The headers had been sent, so the connection was closed without an answer"
        case "stream":
            return f"Streamed: {row.frames} {'frame' if row.frames == 1 else 'frames'}"
        case "notified":
            return "Notification: the work was done, and no answer is due"
        case "left":
            return "The caller disconnected before the answer; the task went on"
        case _:
            return "Answered"


def explain_no_response(row: Exchange) -> str:
    """Return the sentence that stands in place of a missing response."""
    if row.http_status == 401:
        return UNAUTHENTICATED
    return {
        "": "No answer recorded.",
        "notified": "A notification gets no answer.",
        "left": "The caller had disconnected.",
    }.get(row.outcome, "The answer was not stored, and it cannot be derived from the task's log any more.")


def build_facts(row: Exchange) -> list[Fact]:
    """Return the facts at the top of an exchange's page."""
    events = "" if row.last_seq is None else f"up to {row.last_seq}"
    if row.first_seq is not None:
        events = f"{row.first_seq} … {row.last_seq}"
    rpc_id = "" if row.rpc_id is None else reveal(row.rpc_id)
    return [
        Fact("Method", reveal(row.method)),
        Fact("Code", format_code(row)),
        Fact("HTTP status", "" if row.http_status is None else str(row.http_status)),
        Fact("Time (UTC)", format_time(row.created_at)),
        Fact("Duration", format_duration(row.duration_us)),
        Fact("RPC id", f"{rpc_id} ({row.rpc_id_type})".strip()),
        Fact("Request id", reveal(row.request_id or row.id)),
        Fact("Exchange id", row.id),
        Fact("Caller", reveal(row.caller.name) if row.caller else ""),
        Fact("Address of the caller", reveal(row.peer or ""), _link_calls_from(row.peer) if row.peer else ""),
        Fact("Tenant", reveal(row.tenant.name) if row.tenant else ""),
        Fact("Task", reveal(row.task_id or ""), link("task", row.task_id) if row.task_id else ""),
        Fact("Context", reveal(row.context_id or "")),
        Fact("Trace", reveal(row.trace)),
        Fact("Dialect", reveal(row.dialect)),
        Fact("Requested version", reveal(row.version)),
        Fact("Door", reveal(row.door)),
        Fact("Envelope", reveal(row.envelope or "")),
        Fact("Request size", format_size(row.request_bytes)),
        Fact("Response size", format_size(row.response_bytes)),
        Fact("Frames", str(row.frames) if row.outcome == "stream" else ""),
        Fact("Task events", events),
    ]


def _link_calls_from(peer: str) -> str:
    """Return the link to the newest calls from an address."""
    return f"{reverse('admin:tasks_app_exchange_changelist')}?{urlencode({'peer': peer})}"


def build_call(row: Exchange) -> dict[str, str]:
    """Return a line of calls.html. The caller of the exchange must be selected."""
    return {
        "id": row.id,
        "href": link("exchange", row.id),
        "method": reveal(row.method),
        "rpc_id": reveal(row.rpc_id or ""),
        "caller": reveal(row.caller.name) if row.caller else "",
        "mark": row.outcome or "none",
        "outcome": describe_outcome(row),
        "duration": format_duration(row.duration_us),
        "time": format_time(row.created_at),
    }
