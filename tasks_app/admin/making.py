"""Forms that make a row. If it has a secret, such as an API key or a token, they show the secret once."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.cache import add_never_cache_headers

from a2a import languages
from tasks_app.admin.readonly import read_operator
from tasks_app.admin.text import reveal
from tasks_app.operators import keys, reach, tokens
from tasks_app.operators.refusals import sentence_of
from tasks_app.operators.texts import add_checks, find_warnings


def list_languages() -> list[tuple[str, str]]:
    """Return the languages to which callers can be pinned, as choices of a form."""
    return [("", "as the method decides"), *((name, name) for name in languages.ALL.pinnable)]


class Checked(forms.Form):
    """The base of forms with the checks that commands and the operators' API make, too."""

    def __init__(self, *args: Any, **values: Any) -> None:
        super().__init__(*args, **values)
        add_checks(self.fields)


class Reason(Checked):
    """The end of each form."""

    reason = forms.CharField(max_length=255, required=False, help_text="Recorded with the act.")


class NewKey(Reason):
    """The form of an API key."""

    principal = forms.CharField(max_length=64, help_text="The owner of its tasks; made if it does not exist.")
    tenant = forms.CharField(max_length=64, initial="default")
    name = forms.CharField(max_length=64, required=False, help_text="A name to tell keys apart.")
    scopes = forms.CharField(max_length=255, initial="*", help_text="Separated by spaces; * is all.")
    language = forms.ChoiceField(
        required=False, choices=list_languages, help_text="The language of calls that name no version."
    )
    days = forms.FloatField(required=False, help_text="Days until it expires; empty: never.")
    networks = forms.CharField(
        required=False, help_text="Networks that calls may come from, separated by spaces; empty: any."
    )
    field_order = ("principal", "tenant", "name", "scopes", "language", "days", "networks", "reason")


class NewToken(Reason):
    """The form of a token, for the operator who is logged in."""

    name = forms.CharField(max_length=64, help_text="The program that will use it.")
    days = forms.IntegerField(min_value=1, max_value=tokens.MOST_DAYS, initial=tokens.DAYS)
    administers = forms.BooleanField(required=False, help_text="It may do what gives rights to others.")
    field_order = ("name", "days", "administers", "reason")


class Making(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """A page that makes a row, beside the pages of a read-only table."""

    making_form: ClassVar[type[Reason]]
    making_verb: ClassVar = "Make"
    """The button of the form, and the beginning of its title."""

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        """Make the row. Return it with its secret, which is empty for a row without one.

        Raises ValueError with a sentence for a value that is wrong.
        """
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form, row, secret = self.making_form(request.POST or None), None, ""
        if request.method == "POST" and form.is_valid():
            values = {name: form.cleaned_data[name] for name in form.fields if name != "reason"}
            try:
                row, secret = self.make(request, values)
            except ValueError as error:
                form.add_error(None, sentence_of(error))
        if row:
            warn_of_scopes(self, request, form.cleaned_data)
        if row and not secret:
            self.message_user(request, f"{self.opts.verbose_name} {reveal(str(row))}: stored.", messages.SUCCESS)
            return HttpResponseRedirect(reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist"))
        request.current_app = self.admin_site.name
        page = {
            **self.admin_site.each_context(request),
            "title": f"{self.making_verb} {self.opts.verbose_name}",
            "verb": self.making_verb,
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "row": row,
            "secret": secret,
        }
        answer = TemplateResponse(request, "admin/tasks_app/make.html", page)
        add_never_cache_headers(answer)
        return answer


def warn_of_scopes(model_admin: "admin.ModelAdmin[Any]", request: HttpRequest, values: Mapping[str, Any]) -> None:
    """Warn of the scopes among the values of a form that open nothing here."""
    for sentence in find_warnings(values.get("scopes", "")):
        model_admin.message_user(request, sentence, messages.WARNING)


def check_tenant(request: HttpRequest, name: str) -> None:
    """Check that the operator may make rows of the tenant. Raises ValueError."""
    if not reach.may_write(request.user, name):
        raise ValueError(reach.explain_refusal(request.user, name))


class MakesKeys(Making):
    """The page that makes an API key."""

    making_form = NewKey

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        check_tenant(request, values["tenant"])
        return keys.make_key(read_operator(request), **values | {"language": values["language"] or None})


class MakesTokens(Making):
    """The page that makes a token of the operator who is logged in."""

    making_form = NewToken

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        try:
            return tokens.make_token(request.user, by=read_operator(request), **values)
        except tokens.TokenRefused as refusal:
            raise ValueError(str(refusal)) from None
