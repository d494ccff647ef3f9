"""Clients of our own OAuth server: added by a form, and changed by actions. Each secret is shown once."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.asking import act_on_one
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.making import Checked, Making, Reason, check_tenant
from tasks_app.admin.readonly import read_operator
from tasks_app.admin.text import format_time
from tasks_app.models import OAuthClient
from tasks_app.models.clients import AUTHORIZATION_CODE, CLIENT_CREDENTIALS
from tasks_app.oauth import clients
from tasks_app.operators.audit import Operator


class RedirectUris(forms.CharField):
    """A field of redirect URIs, whose value is the list of them."""

    def __init__(self, help_text: str) -> None:
        text = forms.Textarea(attrs={"rows": 3})
        super().__init__(required=False, max_length=40_000, label="Redirect URIs", widget=text, help_text=help_text)

    def clean(self, value: Any) -> list[str]:
        return str(super().clean(value)).split()


class NewClient(Reason):
    """The form of a client."""

    name = forms.CharField(max_length=64, help_text="The name that operators see when they approve it.")
    principal = forms.CharField(max_length=64, help_text="The principal of its tokens; made if it does not exist.")
    tenant = forms.CharField(max_length=64, initial="default")
    scopes = forms.CharField(
        max_length=255, help_text="The scopes that its tokens may have at most, separated by spaces."
    )
    grant = forms.ChoiceField(choices=[(grant, grant) for grant in (CLIENT_CREDENTIALS, AUTHORIZATION_CODE)])
    redirect_uris = RedirectUris("For authorization codes: one address on each line.")
    public = forms.BooleanField(required=False, help_text="A program that can keep no secret.")
    field_order = ("name", "principal", "tenant", "scopes", "grant", "redirect_uris", "public", "reason")


class ChangedClient(Checked):
    """The scopes and the redirect URIs of a client. An empty field leaves what there is."""

    scopes = forms.CharField(
        required=False, max_length=255, help_text="The most scopes of its tokens; empty: those that it has."
    )
    redirect_uris = RedirectUris("One address on each line; empty: those that it has.")


class Overlap(forms.Form):
    """The field of a rotation."""

    overlap_hours = forms.FloatField(
        min_value=0, max_value=8760, initial=24, help_text="Hours for which the former secret stays valid."
    )


class OAuthClientAdmin(Making, DatedTable[OAuthClient]):
    """The page of clients. The toolkit registers it, as its page of applications, if the OAuth server is on."""

    making_form = NewClient
    making_verb = "Add"
    list_display = (
        "show_created_at",
        "name",
        "show_revoked_at",
        "show_disabled_at",
        "client_id",
        "principal",
        "scopes",
        "authorization_grant_type",
        "client_type",
    )
    list_display_links = ("name",)
    fields = (*list_display, "redirect_uris", "show_former_until")
    list_select_related = ("principal",)
    ordering = ("-id",)
    search_fields = ("name", "client_id", "principal__name", "principal__tenant__name")
    search_help_text = "A part of the name, of the client id, of the principal or of its tenant."
    actions = ("change_client", "rotate", "disable", "enable", "revoke")

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        check_tenant(request, values["tenant"])
        return clients.add(clients.NewClient(**values), read_operator(request))

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="disabled (UTC)")
    def show_disabled_at(self, row: OAuthClient) -> str | None:
        return format_time(row.disabled_at) or None

    @admin.display(description="former secret until (UTC)")
    def show_former_until(self, row: OAuthClient) -> str | None:
        return format_time(row.former_until) or None

    @admin.action(permissions=["act"], description="Change scopes or redirect URIs of the selected client")
    def change_client(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Set the scopes or the redirect URIs of one client, in place of those from before."""

        def change(row: OAuthClient, by: Operator, values: dict[str, Any]) -> str:
            if not clients.change(row, by, values["scopes"] or None, values["redirect_uris"] or None):
                raise ValueError("the client has these values already")
            return ""

        rows = queryset.select_related("principal__tenant")
        warning = "Its tokens have these scopes at most from now on, and browsers return to these addresses alone."
        return act_on_one(self, request, rows, "change_client", change, form=ChangedClient, warning=warning)

    @admin.action(permissions=["act"], description="Give the selected client a new secret")
    def rotate(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Give a client a new secret after confirmation, and show it once."""

        def change(client: OAuthClient, by: Operator, values: dict[str, Any]) -> str:
            return clients.rotate(client, by, timedelta(hours=values["overlap_hours"]))

        return act_on_one(
            self,
            request,
            queryset.select_related("principal__tenant"),
            "rotate",
            change,
            form=Overlap,
            warning="A new secret is made and shown once. The former one stays valid for the overlap.",
            describe=lambda row: f"{row} of {row.principal}",
        )

    @admin.action(permissions=["act"], description="Disable selected clients")
    def disable(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Refuse the clients and their tokens, until they are enabled."""
        warning = "These clients get no tokens, and calls with their tokens are refused, until you enable them again."
        return self._act(request, queryset, "disable", clients.disable, warning)

    @admin.action(permissions=["act"], description="Enable selected clients")
    def enable(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Accept the clients and their tokens again."""
        warning = "These clients get tokens again, and calls with their tokens are accepted."
        return self._act(request, queryset, "enable", clients.enable, warning)

    @admin.action(permissions=["act"], description="Revoke selected clients")
    def revoke(self, request: HttpRequest, queryset: QuerySet[OAuthClient]) -> HttpResponse | None:
        """Refuse the clients for ever, and delete their tokens."""
        warning = "These clients and their tokens are refused from now on. A revoked client cannot be restored."
        return self._act(request, queryset, "revoke", clients.revoke, warning)

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[OAuthClient],
        name: str,
        verb: Callable[[OAuthClient, Operator], bool],
        warning: str,
    ) -> HttpResponse | None:
        rows = queryset.select_related("principal__tenant")
        return act_on_each(
            self, request, rows, name, verb, describe=lambda row: f"{row} of {row.principal}", warning=warning
        )
