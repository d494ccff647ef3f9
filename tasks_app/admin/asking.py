"""Actions on one row. Their page of confirmation may ask for values, and a secret that they make is shown once."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from tasks_app.admin.making import warn_of_scopes
from tasks_app.admin.readonly import M, confirm, read_operator
from tasks_app.admin.text import reveal
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import ActRefused, sentence_of
from tasks_app.operators.removals import RowRemoved, watching


def act_on_one(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    rows: QuerySet[M],
    name: str,
    verb: Callable[[M, Operator, dict[str, Any]], str],
    *,
    form: type[forms.Form] = forms.Form,
    warning: str,
    describe: Callable[[M], str] = str,
) -> HttpResponse | None:
    """Ask for confirmation and for the values of the form, then perform the verb on the one row that was selected.

    `name` is the name of the action, and `describe` names the row on the page. `verb` returns the secret to show, or an
    empty text, and raises ValueError or ActRefused with a sentence.
    """
    selection, noun = list(rows[:2]), model_admin.opts.verbose_name
    if len(selection) != 1:
        model_admin.message_user(request, f"Select one {noun} for this action.", messages.ERROR)
        return None
    (row,) = selection
    title, is_confirmed = name.replace("_", " ").capitalize(), request.POST.get("post") == "yes"
    fields, line = form(request.POST if is_confirmed else None), reveal(describe(row))
    if is_confirmed and fields.is_valid():
        try:
            with watching(row):
                secret = verb(row, read_operator(request), fields.cleaned_data)
        except (ValueError, ActRefused, RowRemoved) as error:
            model_admin.message_user(request, sentence_of(error), messages.ERROR)
        else:
            warn_of_scopes(model_admin, request, fields.cleaned_data)
            if secret:
                return _show(model_admin, request, title, line, secret)
            model_admin.message_user(request, f"{title}: {line}.", messages.SUCCESS)
        return None
    rows_of_page = [(str(row.pk), line)]
    return confirm(
        model_admin, request, rows_of_page, [line], action=name, title=f"{title}?", warning=warning, form=fields
    )


def _show(
    model_admin: "admin.ModelAdmin[Any]", request: HttpRequest, title: str, line: str, secret: str
) -> HttpResponse:
    """Return the page that shows a secret."""
    context = model_admin.admin_site.each_context(request) | {"title": title, "opts": model_admin.opts}
    context |= {"media": model_admin.media, "line": line, "secret": secret}
    return TemplateResponse(request, "admin/tasks_app/new_secret.html", context)
