"""Deliveries: each with its receiver, body and tries. Operators send them again or give them up."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Min, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app import webhooks
from tasks_app.admin.acting import ActionTable, format_count
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import NONE, Pane, format_duration, format_size, format_time, reveal
from tasks_app.database.keyset import fetch_page
from tasks_app.models import Delivery, DeliveryTry
from tasks_app.models.states import DeliveryState, WebhookState
from tasks_app.operators import lookup
from tasks_app.sealing import site_of

TRIES = 100
"""Newest tries that a page shows."""


class DeliveryStateFilter(ExactFilter):
    title = parameter_name = "state"
    unindexed = lookup.UNINDEXED_VALUES[Delivery, "state"]

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return Delivery.STATES


@admin.register(Delivery)
class DeliveryAdmin(ActionTable[Delivery]):
    list_display = (
        "show_created_at",
        "show_state",
        "show_receiver",
        "seq",
        "attempt",
        "status",
        "show_next_try",
        "show_error",
        "show_task",
        "id",
    )
    list_filter = (DeliveryStateFilter,)
    search_help_text = "An exact delivery id (webhook-id), webhook id or task id."
    search_columns = ("pk", "webhook_id", "task_id")
    actions = ("send_again", "give_up")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return super().get_queryset(request).defer("body").select_related("webhook")

    def add_columns(self, request: HttpRequest, rows: list[Delivery]) -> None:
        next_tries = find_next_tries(rows)
        for row in rows:
            row.next_try = next_tries.get(row.pk)  # type: ignore[attr-defined]  # for the list alone

    def get_queryset_for_page(self) -> QuerySet[Delivery]:
        return select_deliveries()

    @admin.display(description="receiver")
    def show_receiver(self, row: Delivery) -> str:
        return find_receiver(row)

    @admin.display(description="next try (UTC)")
    def show_next_try(self, row: Any) -> str | None:
        return row.next_try or None

    @admin.display(description="error")
    def show_error(self, row: Delivery) -> str | None:
        return reveal(row.error) or None

    def build_page(self, request: HttpRequest, row: Delivery) -> dict[str, Any]:
        pane, body = Pane(), webhooks.readable_body(row, "")
        tries, more = fetch_page(DeliveryTry.objects.filter(delivery_id=row.pk).order_by("-id"), TRIES)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": [*build_facts(row), Fact("Size", format_size(len(body.encode())))],
            "body": pane.show_json(body),
            "body_cut": pane.is_cut,
            "tries": [build_try(each) for each in tries],
            "more_tries": TRIES if more else 0,
        }

    def summarize(self, rows: list[Delivery]) -> list[str]:
        groups: dict[tuple[str, str, str], list[Delivery]] = {}
        for row in rows:
            groups.setdefault((find_receiver(row), row.state, row.error), []).append(row)
        return [
            f"{host}: {format_count(self, len(group))} of {len({row.webhook_id for row in group})} webhooks, {state}"
            + (f": {reveal(error)}" if error else "")
            for (host, state, error), group in groups.items()
        ]

    @admin.action(permissions=["act"], description="Send selected deliveries again")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "send_again",
            webhooks.send_again,
            title="Send these deliveries again?",
            warning="Each webhook gets its deliveries in the order of their events. A receiver may get one twice, "
            "with the same webhook-id.",
            success="Queued to be sent again",
            harmless=True,
        )

    @admin.action(permissions=["act"], description="Give up selected deliveries")
    def give_up(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request,
            queryset,
            "give_up",
            webhooks.one_by_one(webhooks.give_up),
            title="Give up these deliveries?",
            warning="They will not be tried again. Their webhooks go on with the next deliveries.",
            success="Given up",
        )


def find_receiver(row: Delivery) -> str:
    """Return the host of the delivery's webhook, or a dash if the webhook was deleted. The webhook must be selected."""
    return reveal(row.webhook.host) if row.webhook else NONE


def select_deliveries() -> QuerySet[Delivery]:
    """Return deliveries with their webhooks, but without the bodies, which may be large."""
    return Delivery.objects.defer("body").select_related("webhook")


def find_next_tries(rows: Sequence[Delivery]) -> dict[str, str]:
    """Return, for each waiting delivery, the time of its next try or the event whose delivery comes first.

    The webhooks of the deliveries must be selected.
    """
    waiting = [
        row
        for row in rows
        if row.state == DeliveryState.WAITING and row.webhook and row.webhook.state == WebhookState.ACTIVE
    ]
    ahead = Delivery.objects.filter(webhook_id__in={row.webhook_id for row in waiting}, state=DeliveryState.WAITING)
    first = dict(ahead.values_list("webhook_id").annotate(first=Min("seq"))) if waiting else {}
    return {
        row.pk: format_time(row.webhook.due_at)
        if row.seq <= first.get(row.webhook_id, row.seq)
        else f"after event {first[row.webhook_id]}"
        for row in waiting
    }


def build_facts(row: Delivery) -> list[Fact]:
    webhook = row.webhook
    return [
        Fact("Receiver", reveal(site_of(webhook.url)) if webhook else ""),
        Fact("Next try (UTC)", find_next_tries([row]).get(row.pk, "")),
        Fact("Task", row.task_id, link("task", row.task_id)),
        Fact("Event", str(row.seq)),
        Fact("Webhook", row.webhook_id, link("webhook", row.webhook_id)),
        Fact("Version", row.version),
        Fact("Language", row.language_name),
        Fact("Attempts", str(row.attempt)),
        Fact("Last answer", "" if row.status is None else f"HTTP {row.status}"),
        Fact("Error", reveal(row.error)),
        Fact("Written (UTC)", format_time(row.created_at)),
        Fact("Done (UTC)", format_time(row.done_at)),
    ]


def build_deliveries(rows: Sequence[Delivery]) -> list[dict[str, str]]:
    """Return the lines of deliveries.html. The webhooks of the deliveries must be selected."""
    next_tries = find_next_tries(rows)
    return [
        {
            "id": row.pk,
            "href": link("delivery", row.pk),
            "receiver": find_receiver(row),
            "webhook_href": link("webhook", row.webhook_id),
            "seq": str(row.seq),
            "state": row.state,
            "attempt": str(row.attempt),
            "status": "" if row.status is None else str(row.status),
            "error": reveal(row.error),
            "next": next_tries.get(row.pk, ""),
            "time": format_time(row.created_at),
        }
        for row in rows
    ]


def build_try(row: DeliveryTry) -> dict[str, str]:
    return {
        "attempt": str(row.attempt),
        "time": format_time(row.at),
        "status": "" if row.status is None else str(row.status),
        "error": reveal(row.error),
        "duration": format_duration(row.duration_ms * 1_000),
    }
