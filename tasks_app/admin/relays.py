"""Relays: the state of their cards, and the credentials for their remote agents, whose secrets no page shows."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.asking import act_on_one
from tasks_app.admin.making import Checked
from tasks_app.admin.readonly import ReadOnly
from tasks_app.admin.text import format_time, reveal
from tasks_app.models import Relay
from tasks_app.operators.audit import Operator
from tasks_app.operators.texts import LONGEST_URL
from tasks_app.relays import acts


class NewCredentials(Checked):
    """The credentials for a remote agent."""

    secret = forms.CharField(
        max_length=acts.LONGEST_SECRET,
        widget=forms.PasswordInput,
        help_text="A bearer token, unless there is a header or a token URL.",
    )
    header = forms.CharField(
        max_length=128, required=False, help_text="The header that has the secret, such as X-API-Key."
    )
    token_url = forms.CharField(
        max_length=LONGEST_URL,
        required=False,
        label="Token URL",
        help_text="The address for tokens by the client credentials grant of OAuth 2; the secret is the client's.",
    )
    client_id = forms.CharField(max_length=255, required=False, help_text="The client id for the token URL.")
    token_scopes = forms.CharField(
        max_length=1000, required=False, help_text="Scopes for the token URL, separated by spaces."
    )


@admin.register(Relay)
class RelayAdmin(ReadOnly[Relay]):
    list_display = (
        "name",
        "show_url",
        "show_credentials",
        "show_read_at",
        "show_due_at",
        "show_problem",
        "show_open_tasks",
    )
    fields = list_display  # The page of a row shows no sealed text.
    ordering = ("name",)
    sortable_by = ()
    actions = ("login", "logout")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Relay]:
        return super().get_queryset(request).filter(pk__in=acts.rows())

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="address")
    def show_url(self, row: Relay) -> str:
        return reveal(acts.site_of(row))

    @admin.display(description="credentials")
    def show_credentials(self, row: Relay) -> str | None:
        return acts.kind_of(row) or None

    @admin.display(description="card read (UTC)")
    def show_read_at(self, row: Relay) -> str | None:
        return format_time(row.read_at) or None

    @admin.display(description="card due (UTC)")
    def show_due_at(self, row: Relay) -> str | None:
        return format_time(row.due_at) or None

    @admin.display(description="problem")
    def show_problem(self, row: Relay) -> str | None:
        return reveal(row.problem) or None

    @admin.display(description="open remote tasks")
    def show_open_tasks(self, row: Relay) -> int:
        return acts.count_open(row)

    @admin.action(permissions=["act"], description="Store credentials for the selected relay")
    def login(self, request: HttpRequest, queryset: QuerySet[Relay]) -> HttpResponse | None:
        """Store the credentials for a remote agent, in place of former ones."""

        def change(row: Relay, by: Operator, values: dict[str, Any]) -> str:
            acts.log_in(row, acts.Login(**values), by)
            return ""

        warning = "This server uses the credentials at the remote agent within a minute, in place of former ones."
        return act_on_one(self, request, queryset, "login", change, form=NewCredentials, warning=warning)

    @admin.action(permissions=["act"], description="Delete the credentials of the selected relay")
    def logout(self, request: HttpRequest, queryset: QuerySet[Relay]) -> HttpResponse | None:
        """Delete the credentials for a remote agent."""

        def change(row: Relay, by: Operator, values: dict[str, Any]) -> str:
            acts.log_out(row, by)
            return ""

        warning = "This server calls the remote agent without credentials within a minute."
        return act_on_one(self, request, queryset, "logout", change, warning=warning)
