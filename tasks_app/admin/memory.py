"""The memory: entries by owner, namespace and key, each with its value. Operators remove them."""

from datetime import timedelta
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app import clock
from tasks_app.admin.acting import ActionTable, act_on_each, format_count
from tasks_app.admin.filters import AGES, ListFilter, OwnerFilter, RecentFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import Pane, format_owner, format_size, format_time, reveal
from tasks_app.models import MemoryEntry
from tasks_app.operations import memory_acts as acts

NO_TIME = timedelta(0)


class NamespaceFilter(RecentFilter):
    title = parameter_name = "namespace"

    @property
    def is_indexed(self) -> bool:
        return True


class ExpiryFilter(ListFilter):
    title = "expiry"
    parameter_name = "expires"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [("over", "over"), *((age, f"within a {age}") for age in AGES)]

    @property
    def is_indexed(self) -> bool:
        return True

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() is None or self.problem:
            return queryset if self.value() is None else queryset.none()
        return queryset.filter(expires_at__lte=clock.now() + AGES.get(self.value() or "", NO_TIME))


@admin.register(MemoryEntry)
class MemoryAdmin(ActionTable[MemoryEntry]):
    list_display = (
        "show_created_at",
        "show_namespace",
        "show_key",
        "show_owner",
        "show_size",
        "version",
        "show_author",
        "show_expires_at",
    )
    list_select_related = ("owner", "tenant")
    list_filter = (NamespaceFilter, OwnerFilter, ExpiryFilter)
    related = ("owner", "tenant")
    search_columns = ("key",)
    search_help_text = "An exact key."
    actions = ("remove",)

    @admin.display(description="namespace")
    def show_namespace(self, row: MemoryEntry) -> str:
        return reveal(row.namespace)

    @admin.display(description="key")
    def show_key(self, row: MemoryEntry) -> str:
        return reveal(row.key)

    @admin.display(description="size")
    def show_size(self, row: MemoryEntry) -> str:
        return format_size(row.size)

    @admin.display(description="written by")
    def show_author(self, row: MemoryEntry) -> str:
        return reveal(row.author)

    @admin.display(description="expires (UTC)")
    def show_expires_at(self, row: MemoryEntry) -> str | None:
        return format_time(row.expires_at) or None

    def build_page(self, request: HttpRequest, row: MemoryEntry) -> dict[str, Any]:
        pane = Pane()
        return {"facts": build_facts(row), "value": pane.show_json(acts.shown_value(row)), "is_cut": pane.is_cut}

    def summarize(self, rows: list[MemoryEntry]) -> list[str]:
        return [format_count(self, len(rows))]

    @admin.action(permissions=["act"], description="Remove selected memory entries")
    def remove(self, request: HttpRequest, queryset: QuerySet[MemoryEntry]) -> HttpResponse | None:
        return act_on_each(
            self,
            request,
            queryset,
            "remove",
            acts.remove,
            describe=lambda row: reveal(str(row)),
            warning="Their owners and the agents of these owners no longer find them. They cannot be restored.",
        )


def build_facts(row: MemoryEntry) -> list[Fact]:
    """Return the facts at the top of the page."""
    room = acts.room_of(row)
    return [
        Fact("Namespace", reveal(row.namespace)),
        Fact("Key", reveal(row.key)),
        Fact("Owner", format_owner(row)),
        Fact("Size", format_size(row.size)),
        Fact("All entries of the owner", f"{room.entries:,} with {format_size(room.size)}"),
        Fact("Version", str(row.version)),
        Fact("Written by", reveal(row.author)),
        Fact("Task of the agent", row.task_id or "", link("task", row.task_id) if row.task_id else ""),
        Fact("Created (UTC)", format_time(row.created_at)),
        Fact("Written (UTC)", format_time(row.updated_at)),
        Fact("Expires (UTC)", format_time(row.expires_at)),
    ]
