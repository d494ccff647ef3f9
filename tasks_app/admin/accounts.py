"""Service accounts of tokens and certificates: registered by a form, and changed by actions."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ImproperlyConfigured
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse

from tasks_app.admin.acting import act_on_each
from tasks_app.admin.asking import act_on_one
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.making import Checked, Making, Reason, check_tenant, list_languages
from tasks_app.admin.readonly import read_operator
from tasks_app.admin.text import format_time
from tasks_app.models import ServiceAccount
from tasks_app.operators import accounts
from tasks_app.operators.audit import Operator


class NewAccount(Reason):
    """The form of a service account."""

    issuer = forms.CharField(max_length=255, help_text="The claim iss of its tokens; or the word certificate.")
    subject = forms.CharField(max_length=255, help_text="The claim sub of its tokens, or the name of its certificate.")
    principal = forms.CharField(max_length=64, help_text="The principal of its calls; made if it does not exist.")
    tenant = forms.CharField(max_length=64, initial="default")
    scopes = forms.CharField(
        max_length=255, initial="*", help_text="The scopes that it may have at most, separated by spaces; * is all."
    )
    language = forms.ChoiceField(
        required=False, choices=list_languages, help_text="The language of calls that name no version."
    )
    field_order = ("issuer", "subject", "principal", "tenant", "scopes", "language", "reason")


class ChangedAccount(Checked):
    """The scopes of an account."""

    scopes = forms.CharField(
        max_length=255, help_text="The scopes that it may have at most, separated by spaces; * is all."
    )


@admin.register(ServiceAccount)
class ServiceAccountAdmin(Making, DatedTable[ServiceAccount]):
    making_form = NewAccount
    making_verb = "Register"
    list_display = (
        "show_created_at",
        "subject",
        "show_disabled_at",
        "show_not_before",
        "issuer",
        "principal",
        "scopes",
        "language",
    )
    list_display_links = ("subject",)
    fields = list_display
    list_select_related = ("principal",)
    ordering = ("-id",)
    search_fields = ("subject", "issuer", "principal__name", "principal__tenant__name")
    search_help_text = "A part of the subject, of the issuer, of the principal or of its tenant."
    actions = ("change_scopes", "disable", "enable", "refuse_former_tokens")

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        check_tenant(request, values["tenant"])
        values["language"] = values["language"] or None
        try:
            if not accounts.may_register(request.user, values["issuer"]):
                raise ValueError(accounts.NOT_YOURS)
            return accounts.add(values.pop("issuer"), values.pop("subject"), read_operator(request), **values), ""
        except ImproperlyConfigured as error:
            raise ValueError(str(error)) from None

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="disabled (UTC)")
    def show_disabled_at(self, row: ServiceAccount) -> str | None:
        return format_time(row.disabled_at) or None

    @admin.display(description="tokens from (UTC)")
    def show_not_before(self, row: ServiceAccount) -> str | None:
        return format_time(row.not_before) or None

    @admin.action(permissions=["act"], description="Change the scopes of the selected account")
    def change_scopes(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Set the most scopes of one account, in place of those from before."""

        def change(row: ServiceAccount, by: Operator, values: dict[str, Any]) -> str:
            if not accounts.change(row, by, values["scopes"]):
                raise ValueError("the account is limited to these scopes already")
            return ""

        rows = queryset.select_related("principal__tenant")
        warning = "Calls with its tokens and certificates have these scopes at most, from now on."
        return act_on_one(self, request, rows, "change_scopes", change, form=ChangedAccount, warning=warning)

    @admin.action(permissions=["act"], description="Disable selected accounts")
    def disable(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Refuse the accounts until they are enabled."""
        warning = "Calls with their tokens and certificates are refused, until you enable them again."
        return self._act(request, queryset, "disable", accounts.disable, warning)

    @admin.action(permissions=["act"], description="Enable selected accounts")
    def enable(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Accept the accounts again."""
        warning = "Calls with their tokens and certificates are accepted again."
        return self._act(request, queryset, "enable", accounts.enable, warning)

    @admin.action(permissions=["act"], description="Refuse all tokens issued until now")
    def refuse_former_tokens(self, request: HttpRequest, queryset: QuerySet[ServiceAccount]) -> HttpResponse | None:
        """Refuse the tokens that the accounts have now. New ones of their issuers are accepted."""
        warning = "Tokens that were issued until now are refused for ever. New ones are accepted."
        return self._act(request, queryset, "refuse_former_tokens", accounts.set_not_before, warning)

    def _act(
        self,
        request: HttpRequest,
        queryset: QuerySet[ServiceAccount],
        name: str,
        verb: Callable[[ServiceAccount, Operator], bool],
        warning: str,
    ) -> HttpResponse | None:
        rows = queryset.select_related("principal__tenant")
        return act_on_each(self, request, rows, name, verb, warning=warning)
