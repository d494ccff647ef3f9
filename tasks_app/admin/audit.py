"""The audit: entries of calls that change something, and counts of refused calls, as read-only lists."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from tasks_app.admin.filters import CreatedFilter, ExactFilter, RecentFilter
from tasks_app.admin.readonly import Fact, LogTable, link
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import AuditEntry, RefusedCalls
from tasks_app.operators import lookup


class MethodFilter(RecentFilter):
    title = parameter_name = "method"


class OutcomeFilter(RecentFilter):
    title = parameter_name = "outcome"


class CallerFilter(RecentFilter):
    title = parameter_name = "caller"


class IndexedFilter(ExactFilter):
    """A filter that is set by a link, with an index on its column."""

    is_closed = False

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(value, reveal(value))] if (value := self.value()) else []

    @property
    def is_indexed(self) -> bool:
        return True


class PeerFilter(IndexedFilter):
    title = "address"
    parameter_name = "peer"


class CredentialFilter(IndexedFilter):
    title = parameter_name = "credential"


@admin.register(AuditEntry)
class AuditEntryAdmin(LogTable[AuditEntry]):
    list_display = (
        "show_time",
        "show_caller",
        "show_method",
        "outcome",
        "code",
        "show_task",
        "show_peer",
        "credential",
        "door",
    )
    list_filter = (MethodFilter, OutcomeFilter, CallerFilter, CredentialFilter, PeerFilter, CreatedFilter)
    has_acts = False
    search_help_text = (
        "An exact task id or exchange id, an address, a principal as tenant/name, or a credential such as key:12."
    )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[AuditEntry], search_term: str
    ) -> tuple[QuerySet[AuditEntry], bool]:
        return (lookup.find_entries(search_term, queryset) if search_term.strip() else queryset), False

    @admin.display(description="time (UTC)")
    def show_time(self, row: AuditEntry) -> str:
        return format_time(row.created_at)

    @admin.display(description="caller")
    def show_caller(self, row: AuditEntry) -> str:
        return reveal(f"{row.tenant}/{row.caller}")

    @admin.display(description="method")
    def show_method(self, row: AuditEntry) -> str:
        return reveal(row.method)

    @admin.display(description="task")
    def show_task(self, row: AuditEntry) -> str | None:
        return reveal(row.task_id or "") or None

    @admin.display(description="address")
    def show_peer(self, row: AuditEntry) -> str | None:
        return reveal(row.peer or "") or None

    def build_page(self, request: HttpRequest, row: AuditEntry) -> dict[str, Any]:
        facts = [
            Fact("Time (UTC)", format_time(row.created_at)),
            Fact("Caller", reveal(f"{row.tenant}/{row.caller}"), _link_to(caller=row.caller)),
            Fact("Credential", reveal(row.credential), _link_to(credential=row.credential)),
            Fact("Address", reveal(row.peer or ""), _link_to(peer=row.peer) if row.peer else ""),
            Fact("Door", row.door),
            Fact("Language", reveal(row.language)),
            Fact("Method", reveal(row.method)),
            Fact("Task", reveal(row.task_id or ""), link("task", row.task_id) if row.task_id else ""),
            Fact("Webhook", reveal(row.webhook)),
            Fact("Outcome", row.outcome),
            Fact("Code", "" if row.code is None else str(row.code)),
            Fact("Exchange", row.exchange_id, link("exchange", row.exchange_id) if row.exchange_id else ""),
            Fact("Trace", row.trace),
        ]
        return {"facts": [fact for fact in facts if fact.value]}


def _link_to(**filters: str) -> str:
    """Return the link to the entries with this value."""
    return f"{reverse('admin:tasks_app_auditentry_changelist')}?{urlencode(filters)}"


class ReasonFilter(RecentFilter):
    title = parameter_name = "reason"


@admin.register(RefusedCalls)
class RefusedCallsAdmin(LogTable[RefusedCalls]):
    list_display = ("show_hour", "show_caller", "credential", "reason", "count", "show_last_at", "last_peer")
    list_filter = (ReasonFilter, CallerFilter)
    has_acts = False
    search_fields = ("credential",)
    search_help_text = "A credential such as key:12."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[RefusedCalls], search_term: str
    ) -> tuple[QuerySet[RefusedCalls], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        return queryset.none() if "\0" in text else queryset.filter(credential=text), False

    def build_page(self, request: HttpRequest, row: RefusedCalls) -> dict[str, Any]:
        return {
            "facts": [
                Fact("Hour (UTC)", format_time(row.hour)),
                Fact("Caller", reveal(f"{row.tenant}/{row.caller}")),
                Fact("Credential", reveal(row.credential)),
                Fact("Reason", reveal(row.reason)),
                Fact("Calls", str(row.count)),
                Fact("Last (UTC)", format_time(row.last_at)),
                Fact("Last address", reveal(row.last_peer or "")),
            ]
        }

    @admin.display(description="hour (UTC)")
    def show_hour(self, row: RefusedCalls) -> str:
        return format_time(row.hour)

    @admin.display(description="caller")
    def show_caller(self, row: RefusedCalls) -> str:
        return reveal(f"{row.tenant}/{row.caller}")

    @admin.display(description="last (UTC)")
    def show_last_at(self, row: RefusedCalls) -> str:
        return format_time(row.last_at)
