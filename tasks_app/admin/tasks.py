"""Tasks: found by id or context, shown from their log, canceled by the operation."""

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
from tasks_app.admin.acting import AT_ONCE, number_of, summed
from tasks_app.admin.filters import CreatedFilter, ExactFilter
from tasks_app.admin.readonly import LogTable, by, confirmation, link
from tasks_app.admin.text import moment, visible
from tasks_app.ids import own_context
from tasks_app.models import STATES, Task
from tasks_app.operators import lookup
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


@admin.register(Task)
class TaskAdmin(LogTable[Task]):
    list_display = (
        "created", "shown_state", "since", "shown_agent", "shown_owner", "shown_tenant", "shown_context", "id",
    )  # fmt: skip
    list_filter = (StateFilter, AgentFilter, CreatedFilter)
    list_select_related = related = ("owner", "tenant")
    searched = lookup.CANDIDATES
    at_once = AT_ONCE
    search_help_text = "An exact task id or context id, or the reference that a caller was told."
    actions = ("cancel_selected",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Task]:
        contents = ("status", "metadata", "snapshot_status", "artifacts", "history")
        return super().get_queryset(request).defer(*contents)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Task], search_term: str
    ) -> tuple[QuerySet[Task], bool]:
        return (lookup.find_tasks(search_term, queryset) if search_term.strip() else queryset), False

    @admin.display(description="state")
    def shown_state(self, row: Task) -> str:
        return format_html('<span class="td-mark td-{}">{}</span>', row.state, row.get_state_display())

    @admin.display(description="agent")
    def shown_agent(self, row: Task) -> str:
        return visible(row.agent)

    @admin.display(description="owner")
    def shown_owner(self, row: Task) -> str:
        return visible(row.owner.name)

    @admin.display(description="tenant")
    def shown_tenant(self, row: Task) -> str:
        return visible(row.tenant.name)

    @admin.display(description="context")
    def shown_context(self, row: Task) -> str | None:
        # The context of a lone task is made of its own id, which is in the next column.
        return None if row.context_id == own_context(row.pk) else visible(row.context_id)

    @admin.display(description="since (UTC)")
    def since(self, row: Task) -> str:
        return moment(row.status_at)

    @admin.display(description="created (UTC)")
    def created(self, row: Task) -> str:
        return moment(row.created_at)

    def page(self, request: HttpRequest, row: Task) -> dict[str, Any]:
        may_cancel = self.has_cancel_permission(request) and row.state not in TERMINAL
        return {
            **task_page.context(
                row,
                exchanges=request.user.has_perm("tasks_app.view_exchange"),
                deliveries=request.user.has_perm("tasks_app.view_delivery"),
            ),
            "may_cancel": may_cancel,
        }

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    def get_urls(self) -> list[URLPattern]:
        # Before Django's own, the last of which takes any path.
        cancel = path(
            "<path:object_id>/cancel/",
            self.admin_site.admin_view(self.cancel_view),
            name="tasks_app_task_cancel",
        )
        return [cancel, *super().get_urls()]

    def cancel_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The button on the page of a task."""
        if not self.has_cancel_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        task_id = unquote(object_id)
        summed(self, request, {task_id: self.cancel_one(request, task_id)}, "Canceled")
        return HttpResponseRedirect(link("task", task_id))

    @admin.action(permissions=["cancel"], description="Cancel selected tasks")
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Task]) -> HttpResponse | None:
        """Ask back, naming every task; then cancel those named, whatever the filters say by then."""
        if request.POST.get("post") == "yes":
            chosen = request.POST.getlist(ACTION_CHECKBOX_NAME)[:AT_ONCE]
            summed(self, request, {task_id: self.cancel_one(request, task_id) for task_id in chosen}, "Canceled")
            return None
        rows = list(queryset.values_list("pk", "agent", "state")[: AT_ONCE + 1])
        if len(rows) > AT_ONCE:
            self.message_user(request, f"At most {AT_ONCE} tasks at once: nothing was done.", messages.ERROR)
            return None
        kinds = Counter((agent, state) for _, agent, state in rows)
        return confirmation(
            self,
            request,
            [(task_id, f"{task_id} ({visible(agent)}, {state.replace('_', ' ')})") for task_id, agent, state in rows],
            [
                f"agent {visible(agent)}: {number_of(self, count)}, {state.replace('_', ' ')}"
                for (agent, state), count in kinds.items()
            ],
            action="cancel_selected",
            title=f"Cancel {number_of(self, len(rows))}?",
            warning="Agents at work on them are told to stop; their callers see the tasks as canceled.",
        )

    def cancel_one(self, request: HttpRequest, task_id: str) -> Answer:
        """Cancel a task."""
        if "\0" in task_id:
            return Answer(refusal="Task not found.")
        try:
            operations.cancel_for_operator(task_id, by(request))
        except Error as error:
            return Answer(refusal=f"{error.sentence}.")
        return Answer()
