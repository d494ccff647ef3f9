"""Tables of rows that operators act on: found by exact ids; each act asks back, and is written down."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from tasks_app.admin.readonly import LogTable, M, by, confirmation, link
from tasks_app.admin.text import moment, visible
from tasks_app.operators.audit import Operator
from tasks_app.webhooks import Answer

AT_ONCE = 500
"""Rows that one action is done to at most."""
REFUSALS = 5
"""Reasons for refusals that are shown."""


class Acting(LogTable[M]):
    """Rows that operators act on, webhooks and deliveries: each has a state and a task, and each act asks back."""

    at_once = AT_ONCE
    found_by: ClassVar[tuple[str, ...]] = ("pk", "task_id")
    """The columns in which the box looks."""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    @admin.display(description="state")
    def shown_state(self, row: Any) -> str:
        return format_html('<span class="td-mark td-{}">{}</span>', row.state, row.state)

    @admin.display(description="task")
    def shown_task(self, row: Any) -> str:
        return format_html('<a href="{}">{}</a>', link("task", row.task_id), row.task_id)

    @admin.display(description="created (UTC)")
    def created(self, row: Any) -> str:
        return moment(row.created_at)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        text = search_term.strip()
        if not text:
            return queryset, False
        named = Q(*((column, text) for column in self.found_by), _connector=Q.OR)
        return queryset.none() if "\0" in text else queryset.filter(named), False

    def in_words(self, rows: list[Any]) -> list[str]:
        """Return the lines of the page that asks back: what the rows have in common, and how many they are."""
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
        done: str,
        harmless: bool = False,
    ) -> HttpResponse | None:
        """Ask back, naming every row; then act on those named, all at once."""
        if request.POST.get("post") != "yes":
            rows = list(queryset[: AT_ONCE + 1])
            if len(rows) > AT_ONCE:
                self.message_user(request, f"At most {AT_ONCE} at once: nothing was done.", messages.ERROR)
                return None
            return confirmation(
                self, request, [(row.pk, visible(str(row))) for row in rows], self.in_words(rows),
                action=name, title=title, warning=warning, harmless=harmless,
            )  # fmt: skip
        chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)[:AT_ONCE]
        summed(self, request, act(chosen, by(request)), done)
        return None


def summed(
    model_admin: "admin.ModelAdmin[Any]", request: HttpRequest, answers: Mapping[str, Answer], done: str
) -> None:
    """Say in a few messages what became of each row: how many were acted on, and each refusal once."""
    counts = Counter(answer.refusal for answer in answers.values())
    if number := counts.pop("", 0):
        held_up = sum(bool(answer.note) for answer in answers.values())
        note = next((answer.note for answer in answers.values() if answer.note), "")
        more = f" {number_of(model_admin, held_up)} not yet: {note}" if note else ""
        model_admin.message_user(request, f"{done}: {number_of(model_admin, number)}.{more}", messages.SUCCESS)
    for refusal, number in counts.most_common(REFUSALS):
        first = next(id for id, answer in answers.items() if answer.refusal == refusal)
        others = f" and {number - 1} more" if number > 1 else ""
        model_admin.message_user(request, f"{visible(first[:100])}{others}: {refusal}", messages.ERROR)
    if len(counts) > REFUSALS:
        left_out = len(counts) - REFUSALS
        model_admin.message_user(request, f"{left_out} more reasons for refusals are not shown.", messages.ERROR)


def number_of(model_admin: "admin.ModelAdmin[Any]", number: int) -> str:
    """Return a number with the noun of the table: 1 delivery, 53 deliveries."""
    opts = model_admin.opts
    return f"{number} {opts.verbose_name if number == 1 else opts.verbose_name_plural}"
