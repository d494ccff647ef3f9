"""The Slack front: questions with their tasks and the state of their replies, and workspaces."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html

from tasks_app.admin.acting import ActionTable, act_on_each, format_count
from tasks_app.admin.asking import act_on_one
from tasks_app.admin.filters import ExactFilter
from tasks_app.admin.keys import DatedTable
from tasks_app.admin.making import Checked, Making, Reason, check_tenant
from tasks_app.admin.readonly import Fact, link, read_operator
from tasks_app.admin.text import NONE, format_owner, format_time, reveal
from tasks_app.models import SlackQuestion, SlackWorkspace
from tasks_app.operators.audit import Operator
from tasks_app.operators.reach import read_reach
from tasks_app.slack import acts, workspaces
from tasks_app.webhooks import one_by_one


class QuestionStateFilter(ExactFilter):
    title = parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: "admin.ModelAdmin[Any]") -> list[tuple[str, str]]:
        return list(SlackQuestion.STATES)


@admin.register(SlackQuestion)
class SlackQuestionAdmin(ActionTable[SlackQuestion]):
    list_display = (
        "show_created_at",
        "show_state",
        "show_workspace",
        "channel",
        "user",
        "show_task",
        "show_problem",
        "id",
    )
    list_select_related = ("owner", "tenant", "workspace")
    list_filter = (QuestionStateFilter,)
    related = ("owner", "tenant", "workspace")
    search_columns = ("pk", "event_id", "task_id")
    search_help_text = "An exact id of a question, of an event of Slack, or of a task."
    actions = ("send_again", "drop")

    @admin.display(description="workspace")
    def show_workspace(self, row: SlackQuestion) -> str:
        return reveal(str(row.workspace))

    @admin.display(description="task")
    def show_task(self, row: SlackQuestion) -> str:
        return super().show_task(row) if row.task_id else NONE

    @admin.display(description="problem")
    def show_problem(self, row: SlackQuestion) -> str | None:
        return reveal((row.problem or row.refusal)[:100]) or None

    def build_page(self, request: HttpRequest, row: SlackQuestion) -> dict[str, Any]:
        return {"mark": row.state, "state": row.state, "facts": build_facts(row)}

    def summarize(self, rows: list[SlackQuestion]) -> list[str]:
        return [format_count(self, len(rows))]

    @admin.action(permissions=["act"], description="Send replies of selected questions again")
    def send_again(self, request: HttpRequest, queryset: QuerySet[SlackQuestion]) -> HttpResponse | None:
        return self._act(request, queryset, "send_again", "Sent again", "Only replies that have failed are sent again.")

    @admin.action(permissions=["act"], description="Drop selected questions")
    def drop(self, request: HttpRequest, queryset: QuerySet[SlackQuestion]) -> HttpResponse | None:
        return self._act(request, queryset, "drop", "Dropped", "Their users get no reply. Tasks under way go on.")

    def _act(
        self, request: HttpRequest, rows: QuerySet[SlackQuestion], verb: str, success: str, warning: str
    ) -> HttpResponse | None:
        title = f"{verb.replace('_', ' ').capitalize()}: these Slack questions?"
        act = one_by_one(acts.ACTS[verb])
        return self.act(request, rows, verb, act, title=title, warning=warning, success=success)


def build_facts(row: SlackQuestion) -> list[Fact]:
    """Return the facts at the top of the page."""
    return [
        Fact("Problem", reveal(row.problem)),
        Fact("Error that the reply tells", reveal(row.refusal)),
        Fact("Task", reveal(row.task_id or ""), link("task", row.task_id) if row.task_id else ""),
        Fact("Asked as", format_owner(row)),
        Fact("Workspace", reveal(str(row.workspace))),
        Fact("User", reveal(row.user)),
        Fact("Channel", reveal(row.channel)),
        Fact("Thread", reveal(row.thread)),
        Fact("Message", reveal(row.ts)),
        Fact("Event", reveal(row.event_id)),
        Fact("Messages of the reply", reveal(row.posts)),
        Fact("Tries that Slack did not answer", str(row.failures)),
        Fact("Taken by a process", f"{row.fence} times"),
        Fact("Arrived (UTC)", format_time(row.created_at)),
        Fact("Goes on (UTC)", format_time(row.due_at)),
        Fact("Over (UTC)", format_time(row.over_at)),
    ]


class NewWorkspace(Reason):
    """The form of a workspace. It does not show secrets again."""

    bot_token = forms.CharField(
        max_length=512, widget=forms.PasswordInput, help_text="The token of the bot, which begins with xoxb-."
    )
    principal = forms.CharField(max_length=64, help_text="The principal of its questions; made if it does not exist.")
    tenant = forms.CharField(max_length=64, initial="default")
    scopes = forms.CharField(max_length=255, initial=workspaces.SCOPES, help_text="The scopes of its questions.")
    agent = forms.CharField(max_length=64, required=False, help_text="Empty: the default agent.")
    signing_secret = forms.CharField(
        max_length=128, required=False, widget=forms.PasswordInput, help_text="Empty: A2A_SLACK_SIGNING_SECRET."
    )
    field_order = ("bot_token", "principal", "tenant", "scopes", "agent", "signing_secret", "reason")


class UnmappedUser(Checked):
    """A user of a workspace."""

    user = forms.CharField(max_length=32, help_text="The id of the user in Slack.")


class MappedUser(UnmappedUser):
    """A user of a workspace, and the caller of their questions."""

    principal = forms.CharField(max_length=64, help_text="The principal of the user's questions; made if it is new.")
    tenant = forms.CharField(max_length=64, initial="default", help_text="The tenant of the principal.")


@admin.register(SlackWorkspace)
class SlackWorkspaceAdmin(Making, DatedTable[SlackWorkspace]):
    making_form = NewWorkspace
    making_verb = "Add"
    list_display = ("show_created_at", "team_id", "name", "show_disabled_at", "principal", "scopes", "agent")
    list_display_links = ("team_id",)
    fields = (*list_display, "show_signing_secret", "bot_user_id", "show_users")
    list_select_related = ("principal",)
    ordering = ("-id",)
    actions = ("map_user", "unmap_user", "disable", "enable")

    def make(self, request: HttpRequest, values: dict[str, Any]) -> tuple[Model, str]:
        check_tenant(request, values["tenant"])
        wish, within = workspaces.NewWorkspace(**values), read_reach(request.user)
        return workspaces.connect(wish, read_operator(request), within), ""

    def has_act_permission(self, request: HttpRequest) -> bool:
        return self.may_act(request)

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        """Return the workspace with those of its users that the operator may see."""
        row = super().get_object(request, object_id, from_field)
        if row is not None:
            row.seen_users = workspaces.users_of(row, read_reach(request.user))[:200]
        return row

    @admin.display(description="disabled (UTC)")
    def show_disabled_at(self, row: SlackWorkspace) -> str | None:
        return format_time(row.disabled_at) or None

    @admin.display(description="signing secret")
    def show_signing_secret(self, row: SlackWorkspace) -> str:
        return "its own" if row.signing_secret else "A2A_SLACK_SIGNING_SECRET"

    @admin.display(description="users with a caller of their own")
    def show_users(self, row: SlackWorkspace) -> str | None:
        text = ", ".join(f"{user.user_id} as {user.principal.name}" for user in getattr(row, "seen_users", ()))
        return format_html("<bdi>{}</bdi>", reveal(text)) if text else None

    @admin.action(permissions=["act"], description="Give a user of the selected workspace a caller")
    def map_user(self, request: HttpRequest, queryset: QuerySet[SlackWorkspace]) -> HttpResponse | None:
        """Give the questions of one user a caller of their own."""

        def change(row: SlackWorkspace, by: Operator, values: dict[str, Any]) -> str:
            check_tenant(request, values["tenant"])
            within = read_reach(request.user)
            workspaces.map_user(row, values["user"], values["principal"], values["tenant"], by, within)
            return ""

        warning = "From then on, questions of this user are calls of the principal."
        return act_on_one(self, request, queryset, "map_user", change, form=MappedUser, warning=warning)

    @admin.action(permissions=["act"], description="Remove the caller of a user of the selected workspace")
    def unmap_user(self, request: HttpRequest, queryset: QuerySet[SlackWorkspace]) -> HttpResponse | None:
        """Give the questions of a user the caller of the workspace again."""

        def change(row: SlackWorkspace, by: Operator, values: dict[str, Any]) -> str:
            if not workspaces.unmap_user(row, values["user"], by, read_reach(request.user)):
                raise ValueError("This user has no caller of their own")
            return ""

        warning = "From then on, questions of this user are calls of the principal of the workspace."
        return act_on_one(self, request, queryset, "unmap_user", change, form=UnmappedUser, warning=warning)

    @admin.action(permissions=["act"], description="Disable selected workspaces")
    def disable(self, request: HttpRequest, queryset: QuerySet[SlackWorkspace]) -> HttpResponse | None:
        """Refuse their events until they are enabled."""
        warning = "Events of these workspaces are refused, and their questions wait, until you enable them again."
        return act_on_each(self, request, queryset, "disable", workspaces.disable, warning=warning)

    @admin.action(permissions=["act"], description="Enable selected workspaces")
    def enable(self, request: HttpRequest, queryset: QuerySet[SlackWorkspace]) -> HttpResponse | None:
        """Take their events again."""
        warning = "Events of these workspaces are accepted again."
        return act_on_each(self, request, queryset, "enable", workspaces.enable, warning=warning)
