"""Tasks: the list, its search by id or context, and canceling. task_page.py builds the page of one task."""

from collections import Counter
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, HttpResponseRedirect
from django.urls import URLPattern, path
from django.utils.html import format_html

from a2a.agents import registry
from a2a.errors import Error
from a2a.states import TERMINAL
from tasks_app import operations
from tasks_app.admin import task_page
from tasks_app.admin.acting import MAX_SELECTED, describe_too_many, format_count, report_answers
from tasks_app.admin.filters import CreatedFilter, ExactFilter, OwnerFilter
from tasks_app.admin.readonly import LogTable, confirm, link, read_operator
from tasks_app.admin.text import format_time, reveal
from tasks_app.ids import own_context
from tasks_app.models import STATES, Task
from tasks_app.operators import lookup
from tasks_app.operators.refusals import reason_of
from tasks_app.webhooks import Answer


class StateFilter(ExactFilter):
    title = parameter_name = "state"
    unindexed = lookup.UNINDEXED_VALUES[Task, "state"]

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return STATES


class AgentFilter(ExactFilter):
    title = parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return [(name, name) for name in sorted(registry.names())]


class TaskOwnerFilter(OwnerFilter):
    @property
    def is_indexed(self) -> bool:
        # The indexes with the owner do not have the order of the list.
        return False


@admin.register(Task)
class TaskAdmin(LogTable[Task]):
    list_display = (
        "show_created_at",
        "show_state",
        "show_status_at",
        "show_agent",
        "show_owner",
        "show_tenant",
        "show_context",
        "id",
    )
    list_filter = (StateFilter, AgentFilter, TaskOwnerFilter, CreatedFilter)
    list_select_related = ("owner", "tenant")
    related = (*list_select_related, "relayed")
    max_found = lookup.CANDIDATES
    max_selected = MAX_SELECTED
    search_help_text = "An exact task id or context id, or the reference in an error message."
    actions = ("cancel_selected",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        large_columns = ("status", "metadata", "snapshot_status", "artifacts", "history")
        return super().get_queryset(request).defer(*large_columns)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        return (lookup.find_tasks(search_term, queryset) if search_term.strip() else queryset), False

    @admin.display(description="state")
    def show_state(self, row: Task) -> str:
        return format_html('<span class="td-mark td-{}">{}</span>', row.state, row.get_state_display())

    @admin.display(description="agent")
    def show_agent(self, row: Task) -> str:
        return reveal(row.agent)

    @admin.display(description="owner")
    def show_owner(self, row: Task) -> str:
        return reveal(row.owner.name)

    @admin.display(description="tenant")
    def show_tenant(self, row: Task) -> str:
        return reveal(row.tenant.name)

    @admin.display(description="context")
    def show_context(self, row: Task) -> str | None:
        # The context id of a lone task is derived from its task id, which is in the next column.
        return None if row.context_id == own_context(row.pk) else reveal(row.context_id)

    @admin.display(description="since (UTC)")
    def show_status_at(self, row: Task) -> str:
        return format_time(row.status_at)

    @admin.display(description="created (UTC)")
    def show_created_at(self, row: Task) -> str:
        return format_time(row.created_at)

    def build_page(self, request: HttpRequest, row: Task) -> dict[str, Any]:
        may_cancel = self.has_cancel_permission(request) and row.state not in TERMINAL
        return {
            **task_page.build_context(
                row,
                request.user,
                exchanges=request.user.has_perm("tasks_app.view_exchange"),
                deliveries=request.user.has_perm("tasks_app.view_delivery"),
            ),
            "may_cancel": may_cancel,
        }

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    def get_urls(self) -> list[URLPattern]:
        # This path must come before Django's own, the last of which matches everything.
        cancel = path(
            "<path:object_id>/cancel/",
            self.admin_site.admin_view(self.cancel_view),
            name="tasks_app_task_cancel",
        )
        return [cancel, *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Cancel one task, for the button on its page."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        task_id = unquote(object_id)
        report_answers(self, request, {task_id: self.cancel_one(request, task_id)}, "Canceled")
        return HttpResponseRedirect(link("task", task_id))

    @admin.action(permissions=["cancel"], description="Cancel selected tasks")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Task]) -> HttpResponse | None:
        """Ask for confirmation with a list of all tasks, then cancel exactly the tasks on that list."""
        if request.POST.get("post") == "yes":
            selected = request.POST.getlist(ACTION_CHECKBOX_NAME)[:MAX_SELECTED]
            answers = {task_id: self.cancel_one(request, task_id) for task_id in selected}
            report_answers(self, request, answers, "Canceled")
            return None
        rows = list(queryset.values_list("pk", "agent", "state")[: MAX_SELECTED + 1])
        if len(rows) > MAX_SELECTED:
            self.message_user(request, describe_too_many(self), messages.ERROR)
            return None
        kinds = Counter((agent, state) for _, agent, state in rows)
        return confirm(
            self,
            request,
            [(task_id, f"{task_id} ({reveal(agent)}, {state.replace('_', ' ')})") for task_id, agent, state in rows],
            [
                f"agent {reveal(agent)}: {format_count(self, count)}, {state.replace('_', ' ')}"
                for (agent, state), count in kinds.items()
            ],
            action="cancel_selected",
            title=f"Cancel {format_count(self, len(rows))}?",
            warning="Agents that work on these tasks are told to stop. Callers see the tasks as canceled.",
        )

    def cancel_one(self, request: HttpRequest, task_id: str) -> Answer:
        """Cancel a task through the operation, and return its outcome."""
        if not self.select_visible(request, [task_id]):
            return Answer(refusal="Task not found.")
        try:
            operations.cancel_for_operator(task_id, read_operator(request))
        except Error as error:
            return Answer(refusal=f"{reason_of(error)}.")
        return Answer()
