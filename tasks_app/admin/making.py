"""Forms that make a row with a secret, an API key or a token, and show the secret once."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.cache import add_never_cache_headers

from a2a import languages
from tasks_app.admin.readonly import read_operator
from tasks_app.operators import keys, reach, tokens


class Reason(forms.Form):
    """The end of each form."""

    reason = forms.CharField(max_length=255, required=False, help_text="Recorded with the act.")


class NewKey(Reason):
    """The form of an API key."""

    principal = forms.CharField(max_length=64, help_text="The owner of its tasks; made if it does not exist.")
    tenant = forms.CharField(max_length=64, initial="default")
    name = forms.CharField(max_length=64, required=False, help_text="A name to tell keys apart.")
    scopes = forms.CharField(max_length=255, initial="*", help_text="Separated by spaces; * is all.")
    language = forms.ChoiceField(required=False, help_text="The language of calls that name no version.")
    days = forms.FloatField(required=False, help_text="Days until it expires; empty: never.")
    field_order = ("principal", "tenant", "name", "scopes", "language", "days", "reason")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        choices = [("", "as the method decides"), *((name, name) for name in languages.ALL.pinnable)]
        self.fields["language"] = forms.ChoiceField(choices=choices, required=False)
        self.order_fields(self.field_order)


class NewToken(Reason):
    """The form of a token, for the operator who is logged in."""

    name = forms.CharField(max_length=64, help_text="The program that will use it.")
    days = forms.IntegerField(min_value=1, max_value=tokens.MOST_DAYS, initial=tokens.DAYS)
    administers = forms.BooleanField(required=False, help_text="It may do what gives rights to others.")
    field_order = ("name", "days", "administers", "reason")


class Making(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """A page that makes a row, beside the pages of a read-only table."""

    making_form: ClassVar[type[Reason]]

    def make(self, request: HttpRequest, values: dict[str, Any]) -> str:
        """Make the row and return its secret. Raises ValueError with a sentence for a value that is wrong."""
        raise NotImplementedError

    def has_add_permission(self, request: HttpRequest) -> bool:
        return admin.ModelAdmin.has_add_permission(self, request)

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if not self.has_add_permission(request):
            raise PermissionDenied
        form, secret = self.making_form(request.POST or None), ""
        if request.method == "POST" and form.is_valid():
            try:
                secret = self.make(request, {name: form.cleaned_data[name] for name in form.fields if name != "reason"})
            except ValueError as error:
                form.add_error(None, f"{str(error).rstrip('.')}.")
        request.current_app = self.admin_site.name
        page = {
            **self.admin_site.each_context(request),
            "title": f"Make {self.opts.verbose_name}",
            "opts": self.opts,
            "media": self.media,
            "form": form,
            "secret": secret,
        }
        answer = TemplateResponse(request, "admin/tasks_app/make.html", page)
        add_never_cache_headers(answer)
        return answer


class MakesKeys(Making):
    """The page that makes an API key."""

    making_form = NewKey

    def make(self, request: HttpRequest, values: dict[str, Any]) -> str:
        if not reach.may_write(request.user, values["tenant"]):
            raise ValueError(f"The tenant {values['tenant']} is not one of yours")
        return keys.make_key(read_operator(request), **values | {"language": values["language"] or None})[1]


class MakesTokens(Making):
    """The page that makes a token of the operator who is logged in."""

    making_form = NewToken

    def make(self, request: HttpRequest, values: dict[str, Any]) -> str:
        try:
            return tokens.make_token(request.user, by=read_operator(request), **values)[1]
        except tokens.TokenRefused as refusal:
            raise ValueError(str(refusal)) from None
