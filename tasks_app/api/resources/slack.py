"""The Slack front: workspaces whose secrets no answer has, and questions with the state of their replies."""

from typing import Any

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.response import Response

from tasks_app.api.problems import check_done, refuse_body
from tasks_app.api.resource import OwnedRow, Resource, Row
from tasks_app.api.verbs import Body, verb
from tasks_app.models import SlackQuestion, SlackWorkspace
from tasks_app.operators import columns
from tasks_app.operators.audit import Operator
from tasks_app.operators.reach import read_reach
from tasks_app.slack import acts, workspaces


class SlackQuestionRow(OwnedRow):
    workspace = serializers.CharField(source="workspace.team_id")

    class Meta:
        model = SlackQuestion
        fields = ("id", "tenant", "owner", "workspace", *columns.SLACK_QUESTION)


class SlackQuestions(Resource):
    segment = "slack-questions"
    model = SlackQuestion
    serializer_class = SlackQuestionRow
    filters = {"state": "state", "task": "task_id", "event": "event_id"}

    def rows(self) -> QuerySet[SlackQuestion]:
        return SlackQuestion.objects.select_related("tenant", "owner", "workspace")

    @verb()
    def send_again(self, row: SlackQuestion, values: dict[str, Any], operator: Operator) -> None:
        """Send a reply again that has failed."""
        acts.send_again(row.pk, operator)

    @verb()
    def drop(self, row: SlackQuestion, values: dict[str, Any], operator: Operator) -> None:
        """Drop a question that is not answered yet."""
        acts.drop(row.pk, operator)


class SlackWorkspaceRow(Row):
    principal = serializers.CharField(source="principal.name")
    tenant = serializers.CharField(source="principal.tenant.name")
    has_own_signing_secret = serializers.SerializerMethodField()

    class Meta:
        model = SlackWorkspace
        fields = (
            *("id", "team_id", "name", "principal", "tenant", "scopes", "agent"),
            *("has_own_signing_secret", "bot_user_id", "created_at", "disabled_at"),
        )

    def get_has_own_signing_secret(self, row: SlackWorkspace) -> bool:
        return bool(row.signing_secret)


class NewWorkspace(Body):
    bot_token = serializers.CharField(max_length=512, help_text="The token of the bot, which begins with xoxb-.")
    principal = serializers.CharField(max_length=64, help_text="The caller of its questions; made if it is new.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")
    scopes = serializers.CharField(max_length=255, default=workspaces.SCOPES, help_text="The scopes of its questions.")
    agent = serializers.CharField(max_length=64, default="", allow_blank=True, help_text="Empty: the default agent.")
    signing_secret = serializers.CharField(
        max_length=128, default="", allow_blank=True, help_text="Empty: A2A_SLACK_SIGNING_SECRET."
    )


class MappedUser(Body):
    user = serializers.CharField(max_length=32, help_text="The id of the user in Slack.")
    principal = serializers.CharField(max_length=64, help_text="The caller of the user's questions; made if it is new.")
    tenant = serializers.CharField(max_length=64, default="default", help_text="The tenant of the principal.")


class UnmappedUser(Body):
    user = serializers.CharField(max_length=32, help_text="The id of the user in Slack.")


class SlackWorkspaces(Resource):
    segment = "slack-workspaces"
    model = SlackWorkspace
    serializer_class = SlackWorkspaceRow
    filters = {"team": "team_id"}

    def rows(self) -> QuerySet[SlackWorkspace]:
        return SlackWorkspace.objects.select_related("principal__tenant")

    def retrieve(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        users = workspaces.describe(row, read_reach(request.user))["users"]
        return Response(self.describe(row) | {"users": users})

    @verb(permission="add", body=NewWorkspace, one=False, gives_rights=True)
    def create(self, values: dict[str, Any], operator: Operator) -> dict[str, Any]:
        """Add a workspace, or give one that exists new secrets. Slack says to which one the token belongs."""
        self.check_tenant(values["tenant"])
        wish, within = workspaces.NewWorkspace(**values), read_reach(self.request.user)
        try:
            return self.describe(workspaces.connect(wish, operator, within))
        except ValueError as error:
            raise refuse_body(error) from None

    @verb(body=MappedUser, gives_rights=True)
    def map_user(self, row: SlackWorkspace, values: dict[str, Any], operator: Operator) -> None:
        """Give the questions of one user a caller of their own."""
        self.check_tenant(values["tenant"])
        try:
            within = read_reach(self.request.user)
            workspaces.map_user(row, values["user"], values["principal"], values["tenant"], operator, within)
        except ValueError as error:
            raise refuse_body(error) from None

    @verb(body=UnmappedUser, gives_rights=True)
    def unmap_user(self, row: SlackWorkspace, values: dict[str, Any], operator: Operator) -> None:
        """Give the questions of a user the caller of the workspace again."""
        is_done = workspaces.unmap_user(row, values["user"], operator, read_reach(self.request.user))
        check_done(is_done, "user", "without a caller of their own")

    @verb()
    def disable(self, row: SlackWorkspace, values: dict[str, Any], operator: Operator) -> None:
        """Refuse the events of the workspace until it is enabled."""
        check_done(workspaces.disable(row, operator), "workspace", "disabled already")

    @verb(gives_rights=True)
    def enable(self, row: SlackWorkspace, values: dict[str, Any], operator: Operator) -> None:
        """Take the events of the workspace again."""
        check_done(workspaces.enable(row, operator), "workspace", "not disabled")
