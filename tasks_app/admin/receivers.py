"""Receivers of webhooks: which ones have agreed to deliveries. Operators agree for those that know no handshake."""

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from tasks_app import webhooks
from tasks_app.admin.acting import report_answers
from tasks_app.admin.readonly import ReadOnly, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import Receiver


@admin.register(Receiver)
class ReceiverAdmin(ReadOnly[Receiver]):
    list_display = (
        "show_asked_at",
        "show_site",
        "show_owner",
        "show_agreed_at",
        "show_expires_at",
        "show_problem",
        "id",
    )
    list_display_links = None
    list_select_related = ("owner__tenant",)
    ordering = ("-pk",)
    sortable_by = ()
    actions = ("agree", "forget")

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="site")
    def show_site(self, row: Receiver) -> str:
        return reveal(row.site)

    @admin.display(description="owner")
    def show_owner(self, row: Receiver) -> str:
        return reveal(f"{row.owner.name} ({row.owner.tenant.name})")

    @admin.display(description="asked (UTC)")
    def show_asked_at(self, row: Receiver) -> str:
        return format_time(row.asked_at)

    @admin.display(description="agreed (UTC)")
    def show_agreed_at(self, row: Receiver) -> str | None:
        return format_time(row.agreed_at) or None

    @admin.display(description="until (UTC)")
    def show_expires_at(self, row: Receiver) -> str | None:
        return format_time(row.expires_at) or None

    @admin.display(description="problem")
    def show_problem(self, row: Receiver) -> str | None:
        return reveal(row.problem) or None

    @admin.action(permissions=["act"], description="Agree for selected receivers")
    def agree(self, request: HttpRequest, queryset: QuerySet[Receiver]) -> None:
        """Agree for receivers, and send what waits for them."""
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        answers = webhooks.one_by_one(webhooks.agree)(ids, read_operator(request))
        report_answers(self, request, answers, "Agreed for")

    @admin.action(permissions=["act"], description="Forget the answers of selected receivers")
    def forget(self, request: HttpRequest, queryset: QuerySet[Receiver]) -> None:
        """Forget answers, so that the receivers are asked again."""
        ids = [str(pk) for pk in queryset.values_list("pk", flat=True)]
        answers = webhooks.one_by_one(webhooks.forget)(ids, read_operator(request))
        report_answers(self, request, answers, "Forgotten")
