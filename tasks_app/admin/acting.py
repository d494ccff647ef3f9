"""Tables with actions: rows are found by exact ids, and every action asks for confirmation and is recorded."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from tasks_app.admin.readonly import LogTable, M, confirm, link, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.operators.audit import Operator
from tasks_app.operators.refusals import sentence_of
from tasks_app.operators.removals import RowRemoved, watching
from tasks_app.webhooks import Answer

MAX_SELECTED = 500
"""Rows that one action takes at most."""
REFUSALS = 5
"""Different reasons for refusals that are shown."""


class ActionTable(LogTable[M]):
    """The base of the tables of webhooks and deliveries, whose rows have a state and a task."""

    max_selected = MAX_SELECTED
    search_columns: ClassVar[tuple[str, ...]] = ("pk", "task_id")
    """The columns that the search box compares."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="state")
    def show_state(self, row: Any) -> str:
        return format_html('<span class="td-mark td-{}">{}</span>', row.state, row.state)

    @admin.display(description="task")
    def show_task(self, row: Any) -> str:
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), row.task_id)

    @admin.display(description="created (UTC)")
    def show_created_at(self, row: Any) -> str:
        return format_time(row.created_at)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        condition = Q(*((column, text) for column in self.search_columns), _connector=Q.OR)
        # PostgreSQL refuses to search for U+0000.
        return queryset.none() if "\0" in text else queryset.filter(condition), False

    def summarize(self, rows: list[Any]) -> list[str]:
        """Return lines that group and count the rows, for the confirmation page."""
        raise NotImplementedError

    def act(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        name: str,
        act: Callable[[Sequence[str], Operator], Mapping[str, Answer]],
        *,
        title: str,
        warning: str,
        success: str,
        harmless: bool = False,
    ) -> HttpResponse | None:
        """Ask for confirmation with a list of all rows, then act on exactly these rows in one call."""
        if request.POST.get("post") != "yes":
            rows = list(queryset[: MAX_SELECTED + 1])
            if len(rows) > MAX_SELECTED:
                self.message_user(request, describe_too_many(self), messages.ERROR)
                return None
            return confirm(
                self,
                request,
                [(row.pk, reveal(str(row))) for row in rows],
                self.summarize(rows),
                action=name,
                title=title,
                warning=warning,
                harmless=harmless,
            )
        selected = request.POST.getlist(ACTION_CHECKBOX_NAME)[:MAX_SELECTED]
        visible = self.select_visible(request, selected)
        answers = act(visible, read_operator(request)) if visible else {}
        missing = dict.fromkeys(selected, Answer(refusal=f"There is no such {self.opts.verbose_name}."))
        report_answers(self, request, missing | dict(answers), success)
        return None


def act_on_each(
    model_admin: "admin.ModelAdmin[Any]",
    request: HttpRequest,
    rows: QuerySet[M],
    name: str,
    verb: Callable[[M, Operator], bool],
    *,
    describe: Callable[[M], str] = str,
    warning: str,
) -> HttpResponse | None:
    """Ask for confirmation, then perform the verb on each row that was confirmed.

    `name` is the action, and `verb` returns whether it has changed the row. It raises ValueError with a sentence for a
    row that it refuses, which is shown.
    """
    selection, title = list(rows[: MAX_SELECTED + 1]), name.replace("_", " ").capitalize()
    if len(selection) > MAX_SELECTED:
        model_admin.message_user(request, describe_too_many(model_admin), messages.ERROR)
        return None
    if request.POST.get("post") != "yes":
        names = [(str(row.pk), describe(row)) for row in selection]
        heading = f"{title}: {format_count(model_admin, len(selection))}?"
        lines = [text for _, text in names]
        return confirm(model_admin, request, names, lines, action=name, title=heading, warning=warning)
    confirmed_ids = set(request.POST.getlist(ACTION_CHECKBOX_NAME))
    operator = read_operator(request)
    count, refusals = 0, dict[str, Answer]()
    for row in (row for row in selection if str(row.pk) in confirmed_ids):
        try:
            count += _changes(verb, row, operator)
        except ValueError as error:
            refusals[describe(row)] = Answer(refusal=sentence_of(error))
    left = len(selection) - count
    unchanged = f", {left} {'was' if left == 1 else 'were'} not changed" if left else ""
    message = f"{title}: {format_count(model_admin, count)}{unchanged}."
    model_admin.message_user(request, message, messages.SUCCESS if count and not left else messages.WARNING)
    report_answers(model_admin, request, refusals, title)
    return None


def _changes(verb: Callable[[M, Operator], bool], row: M, operator: Operator) -> bool:
    """Perform the verb; return whether it has changed the row. A row that was removed meanwhile is not changed."""
    try:
        with watching(row):
            return verb(row, operator)
    except RowRemoved:
        return False


def report_answers(
    model_admin: "admin.ModelAdmin[Any]", request: HttpRequest, answers: Mapping[str, Answer], success: str
) -> None:
    """Show the outcome in a few messages: the number of rows that were acted on, and each reason for refusals once."""
    counts = Counter(answer.refusal for answer in answers.values())
    if number := counts.pop("", 0):
        notes = [answer.note for answer in answers.values() if answer.note]
        more = f" {format_count(model_admin, len(notes))} not yet: {notes[0]}" if notes else ""
        model_admin.message_user(request, f"{success}: {format_count(model_admin, number)}.{more}", messages.SUCCESS)
    for refusal, number in counts.most_common(REFUSALS):
        first = next(id for id, answer in answers.items() if answer.refusal == refusal)
        others = f" and {number - 1} more" if number > 1 else ""
        model_admin.message_user(request, f"{reveal(first[:100])}{others}: {refusal}", messages.ERROR)
    if len(counts) > REFUSALS:
        more_reasons = len(counts) - REFUSALS
        model_admin.message_user(request, f"{more_reasons} more reasons for refusals are not shown.", messages.ERROR)


def describe_too_many(model_admin: "admin.ModelAdmin[Any]") -> str:
    """Return the error for a selection of more rows than one action takes."""
    name = model_admin.opts.verbose_name_plural
    return f"Nothing was done: an action takes at most {MAX_SELECTED} {name}. Select fewer, or use a filter."


def format_count(model_admin: "admin.ModelAdmin[Any]", number: int) -> str:
    """Return a number with the noun of the table, such as 1 delivery or 53 deliveries."""
    opts = model_admin.opts
    return f"{number} {opts.verbose_name if number == 1 else opts.verbose_name_plural}"
