"""The tables of the Slack front: workspaces, users with a caller of their own, and questions with their replies.

Only tasks_app/slack writes them.
"""

from typing import ClassVar

from django.db import models
from django.db.models import Q

from tasks_app.models.callers import Principal, Tenant
from tasks_app.models.states import SlackQuestionState


class SlackWorkspace(models.Model):
    """A workspace of Slack in which the app is installed, with the caller of its questions."""

    team_id = models.CharField(max_length=32, unique=True, help_text="The id of the workspace in Slack.")
    name = models.CharField(max_length=80, default="", db_default="")
    principal = models.ForeignKey(
        Principal, models.PROTECT, related_name="+", help_text="The caller of questions, unless their user has another."
    )
    scopes = models.CharField(max_length=255, help_text="The scopes of its questions, separated by spaces.")
    agent = models.CharField(max_length=64, default="", db_default="", help_text="Empty: the default agent.")
    bot_token = models.TextField(editable=False, help_text="Sealed.")
    signing_secret = models.TextField(
        default="", db_default="", editable=False, help_text="Sealed; empty: A2A_SLACK_SIGNING_SECRET."
    )
    bot_user_id = models.CharField(max_length=32, default="", db_default="")
    bot_id = models.CharField(max_length=32, default="", db_default="")
    created_at = models.DateTimeField()
    disabled_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        verbose_name = "Slack workspace"

    def __str__(self) -> str:
        return f"{self.name or 'workspace'} ({self.team_id})"


class SlackUser(models.Model):
    """A user of a workspace whose questions have a caller of their own."""

    workspace = models.ForeignKey(SlackWorkspace, models.CASCADE, related_name="users")
    user_id = models.CharField(max_length=32, help_text="The id of the user in Slack.")
    principal = models.ForeignKey(Principal, models.PROTECT, related_name="+")

    tenant_path: ClassVar = "principal__tenant"

    class Meta:
        verbose_name = "Slack user"
        constraints: ClassVar = [models.UniqueConstraint(fields=["workspace", "user_id"], name="slack_user")]

    def __str__(self) -> str:
        return f"{self.user_id} of {self.workspace_id}"


class SlackQuestion(models.Model):
    """A question from Slack: the event that brought it, the task that answers it, and how far its reply is in Slack."""

    STATES: ClassVar = [(state.value, state.value) for state in SlackQuestionState]

    id = models.CharField(max_length=36, primary_key=True)
    workspace = models.ForeignKey(SlackWorkspace, models.PROTECT, related_name="+", db_index=False)
    tenant = models.ForeignKey(Tenant, models.PROTECT, related_name="+", db_index=False)
    owner = models.ForeignKey(Principal, models.PROTECT, related_name="+", db_index=False)
    event_id = models.CharField(max_length=64, unique=True, help_text="Slack's id of the event.")
    channel = models.CharField(max_length=32)
    thread = models.CharField(max_length=32, help_text="The message that the thread began with.")
    ts = models.CharField(max_length=32, help_text="The message with the question.")
    user = models.CharField(max_length=32)
    text = models.TextField(default="", db_default="", help_text="Empty once it is over.")
    files = models.TextField(default="", db_default="", help_text="JSON of its files in Slack; empty once it is over.")
    state = models.CharField(max_length=16, choices=STATES)
    task_id = models.CharField(max_length=36, null=True)
    reply = models.TextField(default="", db_default="", help_text="The whole reply while it is on its way to Slack.")
    posts = models.TextField(default="", db_default="", help_text="The messages of the reply, separated by spaces.")
    refusal = models.CharField(
        max_length=64, default="", db_default="", help_text="The reason of the error that the reply tells, if any."
    )
    sends = models.PositiveIntegerField(
        default=0, db_default=0, help_text="Messages whose posting has begun. One more than `posts`: Slack is asked."
    )
    fence = models.PositiveIntegerField(default=0, db_default=0, help_text="How many times it was taken.")
    failures = models.PositiveIntegerField(default=0, db_default=0, help_text="Tries that Slack did not answer.")
    problem = models.TextField(default="", db_default="", help_text="Why it is not answered, for operators.")
    due_at = models.DateTimeField(null=True, help_text="When any process may go on with it; null: it is over.")
    created_at = models.DateTimeField()
    over_at = models.DateTimeField(null=True)

    tenant_path: ClassVar = "tenant"

    class Meta:
        verbose_name = "Slack question"
        constraints: ClassVar = [
            # A message that mentions the app in a direct message brings two events.
            models.UniqueConstraint(fields=["workspace", "channel", "ts"], name="slack_message")
        ]
        indexes: ClassVar = [
            models.Index(fields=["due_at"], name="slack_due", condition=Q(due_at__isnull=False)),
            models.Index(
                fields=["workspace", "channel", "thread"], name="slack_open", condition=Q(due_at__isnull=False)
            ),
            models.Index(fields=["task_id"], name="slack_task", condition=Q(task_id__isnull=False)),
            # Lists of operators, the newest first, by state or within the tenants that an operator reaches.
            models.Index(fields=["state", "-id"], name="slack_by_state"),
            models.Index(fields=["tenant", "-id"], name="slack_by_tenant"),
        ]

    def __str__(self) -> str:
        return self.id
