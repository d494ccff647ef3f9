"""Tables of rows that operators act on: found by exact ids; each act asks back, and is written down."""

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from tasks_app.admin.readonly import LogTable, M, confirmation, link
from tasks_app.admin.text import moment, visible
from tasks_app.deliveries import ActRefused

AT_ONCE = 500
"""Rows that one action is done to at most."""


class Acting(LogTable[M]):
    """Rows that operators act on, webhooks and deliveries: each has a state and a task, and each act asks back."""

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

    def act(
        self,
        request: HttpRequest,
        queryset: QuerySet[Any],
        name: str,
        act: Callable[[str], None],
        *,
        title: str,
        warning: str,
        done: str,
    ) -> HttpResponse | None:
        """Asks back, naming every row; then acts on those named."""
        if request.POST.get("post") != "yes":
            rows = list(queryset[: AT_ONCE + 1])
            if len(rows) > AT_ONCE:
                self.message_user(request, f"At most {AT_ONCE} at once: nothing was done.", messages.ERROR)
                return None
            names = [(row.pk, visible(str(row))) for row in rows]
            return confirmation(self, request, names, action=name, title=title, warning=warning)
        for pk in request.POST.getlist(ACTION_CHECKBOX_NAME)[:AT_ONCE]:
            row: Model | None = None if "\0" in pk else self.model._default_manager.filter(pk=pk).first()
            try:
                act(pk if row else "")
            except ActRefused as refused:
                self.message_user(request, f"{visible(pk[:100])}: {refused}", messages.ERROR)
            else:
                self.log_change(request, row, f"{done}.")
                self.message_user(request, f"{visible(pk)}: {done.lower()}.", messages.SUCCESS)
        return None
