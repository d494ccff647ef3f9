"""The rows that a page of the admin is for: those that its search finds, and those that a form names by their ids."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.core.exceptions import ValidationError
from django.db.models import Field, QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect

from tasks_app.admin.text import reveal
from tasks_app.operators.texts import check_printable

MOST_MESSAGES = 5
"""Messages about ids that no row can have, at most."""
MOST_WORDS = 10
"""Words of a search for parts of names. Each one may be compared with every row, and SQLite refuses many hundreds."""
MOST_CHARACTERS = 300
"""Characters of such a search. No name is longer than 255."""


class Selecting(admin.ModelAdmin):  # type: ignore[type-arg]  # not generic at run time
    """A page with actions. Of the ids that a form sends, its actions get only those that a row can have."""

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        if len(search_term) > MOST_CHARACTERS or len(search_term.split()) > MOST_WORDS:
            sentence = f"A search has at most {MOST_WORDS} words and {MOST_CHARACTERS} characters."
            self.message_user(request, sentence, messages.ERROR)
            return queryset.none(), False
        return super().get_search_results(request, queryset, search_term)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        if request.method == "POST":
            if problem := find_wrong_reason(request):
                self.message_user(request, f"Nothing was done. {problem}", messages.ERROR)
                return HttpResponseRedirect(request.get_full_path())
            self._clean_selection(request)
        return super().changelist_view(request, extra_context)

    def _clean_selection(self, request: HttpRequest) -> None:
        """Remove impossible ids from the form. Django would pass them to the database, which raises errors for some."""
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)
        wrong = [id for id in selected if not is_possible(self.opts.pk, id)]
        if not wrong:
            return
        form = request.POST.copy()
        form.setlist(ACTION_CHECKBOX_NAME, [id for id in selected if id not in wrong])
        request.POST = form  # type: ignore[assignment]  # Django reads it like the one that it was copied from
        for id in wrong[:MOST_MESSAGES]:
            self.message_user(request, f"There is no {self.opts.verbose_name} {reveal(id[:100])}.", messages.ERROR)


def find_wrong_reason(request: HttpRequest) -> str:
    """Return what is wrong with the reason in a form, in a sentence; empty if an act may have it."""
    try:
        check_printable(request.POST.get("reason", "").strip())
    except ValidationError as error:
        return f"The reason {error.message}."
    return ""


def is_possible(key: "Field[Any, Any]", id: str) -> bool:
    """Return whether a row can have the id: its column takes the value, and PostgreSQL can search for the text."""
    try:
        key.clean(id, None)
    except ValidationError:
        return False
    return "\0" not in id
