"""Calls and their answers: found by any id, shown side by side."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html

from a2a.dialects import DIALECTS
from tasks_app.admin.filters import CreatedFilter, ExactFilter, RecentFilter
from tasks_app.admin.paging import held
from tasks_app.admin.readonly import BROKEN, Fact, LogTable, link
from tasks_app.admin.text import Pane, duration, moment, size, visible
from tasks_app.exchanges import responses
from tasks_app.models import Exchange, ExchangeBody
from tasks_app.operators import lookup

BATCH = 100
"""Members of the same HTTP call that are listed."""
UNANSWERED = "no answer recorded"
GONE = "no such task"
STRANGER = "What a caller without a good key sends, and is answered, is left out on purpose."
REASONS = {
    code: error.reason for dialect in reversed(DIALECTS) for error, code in reversed(list(dialect.codes.items()))
}
"""Reasons by code: those of the newest version, and of several errors with one code that of the first."""
STATUSES = (200, 204, 400, 401, 403, 404, 405, 408, 413, 415, 429, 500, 503)
"""All that the doors give to calls."""


class OutcomeFilter(ExactFilter):
    title = parameter_name = "outcome"
    unindexed = lookup.UNINDEXED_VALUES[Exchange, "outcome"]

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [*((outcome, outcome) for outcome in Exchange.OUTCOMES), ("none", UNANSWERED)]

    def stored(self) -> str | None:
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
    title = "caller"
    parameter_name = "caller__name"


class PeerFilter(ExactFilter):
    """Chosen by a link of the exchange's page: to look up which addresses there are would be one more query."""

    title = "address"
    parameter_name = "peer"
    closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(value, visible(value))] if (value := self.value()) else []


@admin.register(Exchange)
class ExchangeAdmin(LogTable[Exchange]):
    list_display = (
        "time", "shown_outcome", "shown_state", "shown_method", "shown_code", "shown_caller", "took", "shown_rpc_id",
        "door", "dialect",
    )  # fmt: skip
    list_filter = (
        OutcomeFilter, DoorFilter, DialectFilter, MethodFilter, StatusFilter, CallerFilter, PeerFilter, CreatedFilter,
    )  # fmt: skip
    list_select_related = related = ("caller", "tenant")
    searched = lookup.CANDIDATES
    is_acted_on = False
    search_help_text = (
        "An exact rpc id, request id, task id or exchange id, or the reference that a caller was told. "
        "A context id is found among tasks, a trace id nowhere."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Exchange], search_term: str
    ) -> tuple[QuerySet[Exchange], bool]:
        return (lookup.find_exchanges(search_term, queryset) if search_term.strip() else queryset), False

    def complete(self, rows: list[Exchange]) -> None:
        states = lookup.read_states(row.task_id for row in rows)
        for row in rows:
            row.task_state = states.get(row.task_id or "", "")  # type: ignore[attr-defined]  # for the list alone

    @admin.display(description="task now")
    def shown_state(self, row: Any) -> str | None:
        if not row.task_id:
            return None
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), state_mark(row.task_state))

    @admin.display(description="code")
    def shown_code(self, row: Exchange) -> str | None:
        return coded(row.code) or None

    @admin.display(description="rpc id")
    def shown_rpc_id(self, row: Exchange) -> str | None:
        return visible(row.rpc_id or "") or None

    @admin.display(description="method")
    def shown_method(self, row: Exchange) -> str | None:
        return visible(row.method) or None

    @admin.display(description="caller")
    def shown_caller(self, row: Exchange) -> str | None:
        return visible(row.caller.name) if row.caller else None

    @admin.display(description="outcome")
    def shown_outcome(self, row: Exchange) -> str:
        return outcome_mark(row)

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
            "task_href": link("task", row.task_id) if row.task_id else "",
            "task_mark": state_mark(lookup.read_states([row.task_id]).get(row.task_id or "", "")),
            "facts": facts(row),
            "request_text": asked.json(body.request if body else ""),
            "request_cut": asked.cut,
            "response": answered.json(answer),
            "response_cut": answered.cut,
            "unasked": STRANGER if row.http_status == 401 else "The body of the request was not kept.",
            "silence": silence(row),
            "members": [member_line(member) for member in members],
            "more_members": BATCH if more else 0,
        }


def outcome_mark(row: Exchange) -> str:
    """Return the outcome of the call alone as a mark; what has become of its task is a mark of its own."""
    return format_html('<span class="td-mark td-{}">{}</span>', row.outcome or "none", row.outcome or UNANSWERED)


def state_mark(state: str) -> str:
    """Return the state of a task as a mark."""
    return format_html(
        '<span class="td-mark td-{}">{}</span>', state or "gone", state.replace("_", " ") if state else GONE
    )


def coded(code: int | None) -> str:
    """Return an error code with its reason: -38009 UNAUTHENTICATED."""
    return "" if code is None else f"{code} {REASONS.get(code, '')}".strip()


def verdict(row: Exchange) -> str:
    """Return the outcome of the call in words."""
    match row.outcome:
        case "":
            return "No answer recorded"
        case "error" | "refused":
            said = [f"code {coded(row.code)}"] if row.code is not None else []
            said += [f"HTTP {row.http_status}"] if row.http_status is not None else []
            return f"{row.outcome.capitalize()}: {', '.join(said) or 'without a code'}"
        case "broken":
            code = coded(row.code)
            return f"Broken off: code {code}. Its headers were out; the connection was ended without this answer"
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
    if row.http_status == 401:
        return STRANGER
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
        Fact("Code", coded(row.code)),
        Fact("HTTP status", "" if row.http_status is None else str(row.http_status)),
        Fact("Time (UTC)", moment(row.created_at)),
        Fact("Duration", duration(row.duration_us)),
        Fact("RPC id", f"{rpc_id} ({row.rpc_id_type})".strip()),
        Fact("Request id", visible(row.request_id or row.id)),
        Fact("Exchange id", row.id),
        Fact("Caller", visible(row.caller.name) if row.caller else ""),
        Fact("Address of the caller", visible(row.peer or ""), _calls_from(row.peer) if row.peer else ""),
        Fact("Tenant", visible(row.tenant.name) if row.tenant else ""),
        Fact("Task", visible(row.task_id or ""), link("task", row.task_id) if row.task_id else ""),
        Fact("Context", visible(row.context_id or "")),
        Fact("Trace", visible(row.trace)),
        Fact("Dialect", visible(row.dialect)),
        Fact("Version asked for", visible(row.version)),
        Fact("Door", visible(row.door)),
        Fact("Request size", size(row.request_bytes)),
        Fact("Response size", size(row.response_bytes)),
        Fact("Frames", str(row.frames) if row.outcome == "stream" else ""),
        Fact("Task events", stretch),
    ]


def _calls_from(peer: str) -> str:
    """Return the link to the newest calls from an address."""
    return f"{reverse('admin:tasks_app_exchange_changelist')}?{urlencode({'peer': peer})}"


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
