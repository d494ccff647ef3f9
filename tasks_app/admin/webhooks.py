"""Webhooks: where they lead and how they are; switched off and on."""

from collections import Counter
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app import webhooks
from tasks_app.admin.acting import Acting, number_of
from tasks_app.admin.deliveries import delivery_lines, delivery_rows
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.paging import held
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import moment, visible
from tasks_app.models import PushConfig
from tasks_app.sealing import site_of

SHOWN = 100
"""Deliveries that a page shows."""


class WebhookStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return PushConfig.STATES


@admin.register(PushConfig)
class PushConfigAdmin(Acting[PushConfig]):
    list_display = ("created", "shown_state", "due", "address", "version", "shown_task", "id")
    list_filter = (WebhookStateFilter,)
    found_by = ("pk", "task_id", "host")
    search_help_text = "An exact webhook id or task id, or the host of the address."
    actions = ("disable", "enable")

    @admin.display(description="address")
    def address(self, row: PushConfig) -> str:
        return visible(site_of(row.url))

    @admin.display(description="next try (UTC)")
    def due(self, row: PushConfig) -> str | None:
        return moment(row.due_at) or None

    def page(self, request: HttpRequest, row: PushConfig) -> dict[str, Any]:
        # By event: ids of deliveries that are written together are in no order.
        found, more = held(delivery_rows().filter(config_id=row.pk).order_by("-seq"), SHOWN)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": webhook_facts(row),
            "deliveries": delivery_lines(found),
            "more_deliveries": SHOWN if more else 0,
        }

    def in_words(self, rows: list[PushConfig]) -> list[str]:
        hosts = Counter((row.host, row.state) for row in rows)
        return [f"{visible(host)}: {number_of(self, count)}, {state}" for (host, state), count in hosts.items()]

    @admin.action(permissions=["act"], description="Disable selected webhooks")
    def disable(self, request: HttpRequest, queryset: QuerySet[PushConfig]) -> HttpResponse | None:
        return self.act(
            request, queryset, "disable",
            webhooks.one_by_one(webhooks.disable), title="Disable these webhooks?",
            warning="What waits for them is given up; events from now on are not delivered.", done="Disabled",
        )  # fmt: skip

    @admin.action(permissions=["act"], description="Enable selected webhooks")
    def enable(self, request: HttpRequest, queryset: QuerySet[PushConfig]) -> HttpResponse | None:
        return self.act(
            request, queryset, "enable", webhooks.one_by_one(webhooks.enable), title="Enable these webhooks?",
            warning="Events from now on are delivered again; what was given up is not.", done="Enabled", harmless=True,
        )  # fmt: skip


def webhook_facts(row: PushConfig) -> list[Fact]:
    return [
        Fact("Why", visible(row.reason)),
        Fact("Address", visible(site_of(row.url))),
        Fact("Key", str(row.key_id or ""), link("apikey", str(row.key_id)) if row.key_id else ""),
        Fact("Id of its owner", visible(row.config_id)),
        Fact("Task", row.task_id, link("task", row.task_id)),
        Fact("Version", row.version),
        Fact("Authentication", visible(row.schemes)),
        Fact("Token", "kept sealed" if row.token else ""),
        Fact("Next try due (UTC)", moment(row.due_at)),
        Fact("Try under way until (UTC)", moment(row.lease_until)),
        Fact("Registered (UTC)", moment(row.created_at)),
        Fact("Changed (UTC)", moment(row.updated_at)),
    ]
