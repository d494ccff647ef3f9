"""Webhooks: each with its address, state and deliveries. Operators disable and enable them."""

from collections import Counter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app import webhooks
from tasks_app.admin.acting import ActionTable, format_count
from tasks_app.admin.deliveries import build_deliveries, select_deliveries
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import format_time, reveal
from tasks_app.database.keyset import fetch_page
from tasks_app.models import Webhook
from tasks_app.sealing import site_of

DELIVERIES = 100
"""Newest deliveries that a page shows."""


class WebhookStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return Webhook.STATES


@admin.register(Webhook)
class WebhookAdmin(ActionTable[Webhook]):
    list_display = ("show_created_at", "show_state", "show_due_at", "show_address", "version", "show_task", "id")
    list_filter = (WebhookStateFilter,)
    search_columns = ("pk", "task_id", "host")
    search_help_text = "An exact webhook id or task id, or the host of the address."
    actions = ("disable", "enable")

    @admin.display(description="address")
    def show_address(self, row: Webhook) -> str:
        return reveal(site_of(row.url))

    @admin.display(description="next try (UTC)")
    def show_due_at(self, row: Webhook) -> str | None:
        return format_time(row.due_at) or None

    def build_page(self, request: HttpRequest, row: Webhook) -> dict[str, Any]:
        # The order is by event, because ids of deliveries that are written together have no order.
        deliveries, more = fetch_page(select_deliveries().filter(webhook_id=row.pk).order_by("-seq"), DELIVERIES)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": build_facts(row),
            "deliveries": build_deliveries(deliveries),
            "more_deliveries": DELIVERIES if more else 0,
        }

    def summarize(self, rows: list[Webhook]) -> list[str]:
        hosts = Counter((row.host, row.state) for row in rows)
        return [f"{reveal(host)}: {format_count(self, count)}, {state}" for (host, state), count in hosts.items()]

    @admin.action(permissions=["act"], description="Disable selected webhooks")
    def disable(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "disable",
            webhooks.one_by_one(webhooks.disable),
            title="Disable these webhooks?",
            warning="Their waiting deliveries are given up, and later events are not delivered.",
            success="Disabled",
        )

    @admin.action(permissions=["act"], description="Enable selected webhooks")
    def enable(self, request: HttpRequest, queryset: QuerySet[Webhook]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "enable",
            webhooks.one_by_one(webhooks.enable),
            title="Enable these webhooks?",
            warning="Events from now on are delivered. Deliveries that were given up stay so.",
            success="Enabled",
            harmless=True,
        )


def build_facts(row: Webhook) -> list[Fact]:
    return [
        Fact("Reason for the state", reveal(row.reason)),
        Fact("Address", reveal(site_of(row.url))),
        Fact("Key", str(row.key_id or ""), link("apikey", str(row.key_id)) if row.key_id else ""),
        Fact("Credential", row.caller_credential or ""),
        Fact("Id chosen by its owner", reveal(row.name)),
        Fact("Task", row.task_id, link("task", row.task_id)),
        Fact("Version", row.version),
        Fact("Language", row.language_name),
        Fact("Events", ", ".join(row.notice_names)),
        Fact("Authentication", reveal(row.schemes)),
        Fact("Token", "stored encrypted" if row.token else ""),
        Fact("Next try due (UTC)", format_time(row.due_at)),
        Fact("Current try ends by (UTC)", format_time(row.lease_until)),
        Fact("Registered (UTC)", format_time(row.created_at)),
        Fact("Changed (UTC)", format_time(row.updated_at)),
    ]
