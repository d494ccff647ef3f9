"""Webhooks and their deliveries: what was sent where, try by try; sent again, given up, switched off and on."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from tasks_app import deliveries
from tasks_app.admin.paging import ExactFilter, held
from tasks_app.admin.readonly import Fact, LogTable, M, confirmation, link
from tasks_app.admin.text import Pane, duration, moment, size, visible
from tasks_app.deliveries import ActRefused
from tasks_app.models import Delivery, DeliveryTry, PushConfig

AT_ONCE = 500
"""Rows that one action is done to at most."""
SHOWN = 100
"""Deliveries or tries that a page shows."""


class WebhookStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return PushConfig.STATES


class DeliveryStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return Delivery.STATES


class Acting(LogTable[M]):
    """Rows that operators act on; each act asks back."""

    found_by: ClassVar[tuple[str, ...]] = ("pk", "task_id")
    """The columns in which the box looks."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        named = Q(*((column, text) for column in self.found_by), _connector=Q.OR)
        return queryset.none() if "\0" in text else queryset.filter(named), False

    def act(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        name: str,
        act: Callable[[str], None],
        *,
        title: str,
        warning: str,
        done: str,
    ) -> HttpResponse | None:
        """Asks back, naming every row; then acts on those named."""
        if request.POST.get("post") != "yes":
            rows = list(queryset[: AT_ONCE + 1])
            if len(rows) > AT_ONCE:
                self.message_user(request, f"At most {AT_ONCE} at once: nothing was done.", messages.ERROR)
                return None
            names = [(row.pk, visible(str(row))) for row in rows]
            return confirmation(self, request, names, action=name, title=title, warning=warning)
        for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)[:AT_ONCE]:
            row: Model | None = None if "\0" in pk else self.model._default_manager.filter(pk=pk).first()
            try:
                act(pk if row else "")
            except ActRefused as refused:
                self.message_user(request, f"{visible(pk[:100])}: {refused}", messages.ERROR)
            else:
                self.log_change(request, row, f"{done}.")
                self.message_user(request, f"{visible(pk)}: {done.lower()}.", messages.SUCCESS)
        return None


@admin.register(PushConfig)
class PushConfigAdmin(Acting[PushConfig]):
    list_display = ("id", "address", "shown_state", "shown_task", "version", "due", "created")
    list_filter = (WebhookStateFilter,)
    search_help_text = "An exact webhook id or task id."
    actions = ("disable", "enable")

    @admin.display(description="address")
    def address(self, row: PushConfig) -> str:
        return visible(deliveries.shown_address(row.url))

    @admin.display(description="state")
    def shown_state(self, row: PushConfig) -> str:
        return mark(row.state)

    @admin.display(description="task")
    def shown_task(self, row: PushConfig) -> str:
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), row.task_id)

    @admin.display(description="due (UTC)")
    def due(self, row: PushConfig) -> str:
        return moment(row.due_at)

    @admin.display(description="created (UTC)")
    def created(self, row: PushConfig) -> str:
        return moment(row.created_at)

    def page(self, request: HttpRequest, row: PushConfig) -> dict[str, Any]:
        found, more = held(Delivery.objects.filter(config_id=row.pk).defer("body").order_by("-id"), SHOWN)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": webhook_facts(row),
            "deliveries": [delivery_line(delivery) for delivery in found],
            "more_deliveries": SHOWN if more else 0,
        }

    @admin.action(permissions=["act"], description="Disable selected webhooks")
    def disable(self, request: HttpRequest, queryset: QuerySet[PushConfig]) -> HttpResponse | None:
        operator = request.user.get_username()
        return self.act(
            request, queryset, "disable", lambda pk: deliveries.disable(pk, operator), title="Disable these webhooks?",
            warning="What waits for them is given up; events from now on are not delivered.", done="Disabled",
        )  # fmt: skip

    @admin.action(permissions=["act"], description="Enable selected webhooks")
    def enable(self, request: HttpRequest, queryset: QuerySet[PushConfig]) -> HttpResponse | None:
        return self.act(
            request, queryset, "enable", deliveries.enable, title="Enable these webhooks?",
            warning="Events from now on are delivered again; what was given up is not.", done="Enabled",
        )  # fmt: skip


@admin.register(Delivery)
class DeliveryAdmin(Acting[Delivery]):
    list_display = ("id", "shown_state", "shown_task", "seq", "tries", "status", "shown_error", "created")
    list_filter = (DeliveryStateFilter,)
    search_help_text = "An exact delivery id (webhook-id), webhook id or task id."
    found_by = ("pk", "config_id", "task_id")
    actions = ("send_again", "give_up")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Delivery]:
        return super().get_queryset(request).defer("body")

    @admin.display(description="state")
    def shown_state(self, row: Delivery) -> str:
        return mark(row.state)

    @admin.display(description="task")
    def shown_task(self, row: Delivery) -> str:
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), row.task_id)

    @admin.display(description="error")
    def shown_error(self, row: Delivery) -> str:
        return visible(row.error)

    @admin.display(description="created (UTC)")
    def created(self, row: Delivery) -> str:
        return moment(row.created_at)

    def page(self, request: HttpRequest, row: Delivery) -> dict[str, Any]:
        pane = Pane()
        tries, more = held(DeliveryTry.objects.filter(delivery_id=row.pk).order_by("-id"), SHOWN)
        return {
            "mark": row.state,
            "state": row.state,
            "facts": delivery_facts(row),
            "body": pane.json(deliveries.with_files(row.body, "")),
            "body_cut": pane.cut,
            "tries": [try_line(one) for one in tries],
            "more_tries": SHOWN if more else 0,
        }

    @admin.action(permissions=["act"], description="Send selected deliveries again")
    def send_again(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request, queryset, "send_again", deliveries.send_again, title="Send these deliveries again?",
            warning="Their receivers may get them twice, with the same webhook-id.", done="To be sent again",
        )  # fmt: skip

    @admin.action(permissions=["act"], description="Give up selected deliveries")
    def give_up(self, request: HttpRequest, queryset: QuerySet[Delivery]) -> HttpResponse | None:
        return self.act(
            request, queryset, "give_up", deliveries.give_up, title="Give up these deliveries?",
            warning="They are not tried again; the next ones of their webhooks go on.", done="Given up",
        )  # fmt: skip


def mark(state: str) -> str:
    return format_html('<span class="td-mark td-{}">{}</span>', state, state)


def webhook_facts(row: PushConfig) -> list[Fact]:
    return [
        Fact("State", row.state),
        Fact("Why", visible(row.reason)),
        Fact("Address", visible(deliveries.shown_address(row.url))),
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


def delivery_facts(row: Delivery) -> list[Fact]:
    return [
        Fact("State", row.state),
        Fact("Task", row.task_id, link("task", row.task_id)),
        Fact("Event", str(row.seq)),
        Fact("Webhook", row.config_id, link("pushconfig", row.config_id)),
        Fact("Version", row.version),
        Fact("Tries", str(row.tries)),
        Fact("Last answer", "" if row.status is None else f"HTTP {row.status}"),
        Fact("Error", visible(row.error)),
        Fact("Size", size(len(row.body))),
        Fact("Written (UTC)", moment(row.created_at)),
        Fact("Done (UTC)", moment(row.done_at)),
    ]


def delivery_line(row: Delivery) -> dict[str, str]:
    """A delivery as a line of a table on some page."""
    return {
        "id": row.pk,
        "href": link("delivery", row.pk),
        "webhook": row.config_id,
        "webhook_href": link("pushconfig", row.config_id),
        "seq": str(row.seq),
        "state": row.state,
        "tries": str(row.tries),
        "status": "" if row.status is None else str(row.status),
        "error": visible(row.error),
        "time": moment(row.created_at),
    }


def try_line(row: DeliveryTry) -> dict[str, str]:
    return {
        "number": str(row.number),
        "time": moment(row.at),
        "status": "" if row.status is None else str(row.status),
        "error": visible(row.error),
        "duration": duration(row.duration_ms * 1_000),
    }
