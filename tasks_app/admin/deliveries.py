"""Deliveries: what was sent where, try by try; sent again, given up."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import Min, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app import webhooks
from tasks_app.admin.acting import Acting, number_of
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.paging import held
from tasks_app.admin.readonly import Fact, link
from tasks_app.admin.text import NONE, Pane, duration, moment, size, visible
from tasks_app.models import Delivery, DeliveryTry
from tasks_app.operators import lookup
from tasks_app.sealing import site_of

SHOWN = 100
"""Tries that a page shows."""


class DeliveryStateFilter(ExactFilter):
    title = parameter_name = "state"
    unindexed = lookup.UNINDEXED_VALUES[Delivery, "state"]

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return Delivery.STATES


@admin.register(Delivery)
class DeliveryAdmin(Acting[Delivery]):
    list_display = (
        "created", "shown_state", "receiver", "seq", "tries", "status", "shown_next", "shown_error", "shown_task", "id",
    )  # fmt: skip
    list_filter = (DeliveryStateFilter,)
    search_help_text = "An exact delivery id (webhook-id), webhook id or task id."
    found_by = ("pk", "config_id", "task_id")
    actions = ("send_again", "give_up")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return super().get_queryset(request).defer("body").select_related("config")

    def complete(self, rows: list[Delivery]) -> None:
        tries = next_tries(rows)
        for row in rows:
            row.next_try = tries.get(row.pk)  # type: ignore[attr-defined]  # for the list alone

    def get_queryset_for_page(self) -> QuerySet[Delivery]:
        return delivery_rows()

    @admin.display(description="receiver")
    def receiver(self, row: Delivery) -> str:
        return receiver_of(row)

    @admin.display(description="next try (UTC)")
    def shown_next(self, row: Any) -> str | None:
        return row.next_try or None

    @admin.display(description="error")
    def shown_error(self, row: Delivery) -> str | None:
        return visible(row.error) or None

    def page(self, request: HttpRequest, row: Delivery) -> dict[str, Any]:
        pane, body = Pane(), webhooks.shown_body(row, "")
        tries, more = held(DeliveryTry.objects.filter(delivery_id=row.pk).order_by("-id"), SHOWN)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": [*delivery_facts(row), Fact("Size", size(len(body.encode())))],
            "body": pane.json(body),
            "body_cut": pane.cut,
            "tries": [try_line(one) for one in tries],
            "more_tries": SHOWN if more else 0,
        }

    def in_words(self, rows: list[Delivery]) -> list[str]:
        groups: dict[tuple[str, str, str], list[Delivery]] = {}
        for row in rows:
            groups.setdefault((receiver_of(row), row.state, row.error), []).append(row)
        return [
            f"{host}: {number_of(self, len(found))} of {len({row.config_id for row in found})} webhooks, {state}"
            + (f": {visible(error)}" if error else "")
            for (host, state, error), found in groups.items()
        ]

    @admin.action(permissions=["act"], description="Send selected deliveries again")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request, queryset, "send_again", webhooks.send_again, title="Send these deliveries again?",
            warning="Each webhook gets its deliveries in the order of their events. Receivers may get them twice, with "
            "the same webhook-id.", done="To be sent again", harmless=True,
        )  # fmt: skip

    @admin.action(permissions=["act"], description="Give up selected deliveries")
    def give_up(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request, queryset, "give_up", webhooks.one_by_one(webhooks.give_up),
            title="Give up these deliveries?",
            warning="They are not tried again; the next ones of their webhooks go on.", done="Given up",
        )  # fmt: skip


def receiver_of(row: Delivery) -> str:
    """Return the host of the webhook, which must have been selected; a dash where it is no longer kept."""
    return visible(row.config.host) if row.config else NONE


def delivery_rows() -> QuerySet[Delivery]:
    """Return deliveries with their webhooks, without the bodies that some have."""
    return Delivery.objects.defer("body").select_related("config")


def next_tries(rows: Sequence[Delivery]) -> dict[str, str]:
    """Return when each of the deliveries that wait is tried next, or which one it waits for. Their webhooks must have
    been selected."""
    waiting = [row for row in rows if row.state == "waiting" and row.config and row.config.state == "active"]
    ahead = Delivery.objects.filter(config_id__in={row.config_id for row in waiting}, state="waiting")
    first = dict(ahead.values_list("config_id").annotate(first=Min("seq"))) if waiting else {}
    return {
        row.pk: moment(row.config.due_at)
        if row.seq <= first.get(row.config_id, row.seq)
        else f"after event {first[row.config_id]}"
        for row in waiting
    }


def delivery_facts(row: Delivery) -> list[Fact]:
    config = row.config
    return [
        Fact("Receiver", visible(site_of(config.url)) if config else ""),
        Fact("Next try (UTC)", next_tries([row]).get(row.pk, "")),
        Fact("Task", row.task_id, link("task", row.task_id)),
        Fact("Event", str(row.seq)),
        Fact("Webhook", row.config_id, link("pushconfig", row.config_id)),
        Fact("Version", row.version),
        Fact("Tries", str(row.tries)),
        Fact("Last answer", "" if row.status is None else f"HTTP {row.status}"),
        Fact("Error", visible(row.error)),
        Fact("Written (UTC)", moment(row.created_at)),
        Fact("Done (UTC)", moment(row.done_at)),
    ]


def delivery_lines(rows: Sequence[Delivery]) -> list[dict[str, str]]:
    """Return deliveries, with their webhooks, as lines of a table on some page."""
    tries = next_tries(rows)
    return [
        {
            "id": row.pk,
            "href": link("delivery", row.pk),
            "receiver": receiver_of(row),
            "webhook_href": link("pushconfig", row.config_id),
            "seq": str(row.seq),
            "state": row.state,
            "tries": str(row.tries),
            "status": "" if row.status is None else str(row.status),
            "error": visible(row.error),
            "next": tries.get(row.pk, ""),
            "time": moment(row.created_at),
        }
        for row in rows
    ]


def try_line(row: DeliveryTry) -> dict[str, str]:
    return {
        "number": str(row.number),
        "time": moment(row.at),
        "status": "" if row.status is None else str(row.status),
        "error": visible(row.error),
        "duration": duration(row.duration_ms * 1_000),
    }
