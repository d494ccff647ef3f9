"""The Slack front for operators: questions and workspaces, by page, by command and over the API."""

import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from tasks_app import clock
from tasks_app.doctor.work import examine_work
from tasks_app.ids import uuid7, uuid7_at
from tasks_app.models import Act, SlackQuestion, SlackWorkspace
from tasks_app.operators.roles import ADMINISTRATOR, OPERATOR, VIEWER
from tasks_app.operators.users import NamedReach
from tasks_app.sealing import unseal
from tests.conftest import Person
from tests.operators.people import program
from tests.slack.conftest import add_workspace
from tests.support.commands import printed, run
from tests.support.hand import Hand
from tests.support.slack_api import SECRET, TEAM, TOKEN, Answer, Slack, slack
from tests.transports.admin.pages import act, listed, messages_of

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
OTHER = "xoxb-0000000000-another-token"


@pytest.fixture
def workspace(db: None) -> SlackWorkspace:
    return add_workspace(tenant="acme")


@pytest.fixture
def there(settings: Any) -> Any:
    settings.A2A_OUTBOUND_LOOPBACK = True
    settings.A2A_SLACK_EDIT_SECONDS = 0.05
    with slack() as server:
        settings.A2A_SLACK_API = server.url
        yield server


def question(workspace: SlackWorkspace, state: str = "waiting", **columns: Any) -> SlackQuestion:
    id = uuid7()
    facts: dict[str, Any] = {
        "id": id,
        "workspace": workspace,
        "tenant": workspace.principal.tenant,
        "owner": workspace.principal,
        "event_id": f"Ev-{id}",
        "channel": "C1",
        "thread": id[:32],
        "ts": id[:32],
        "user": "U1",
        "text": "<b>why?</b>",
        "state": state,
        "due_at": clock.now() if state in {"waiting", "replying"} else None,
        "created_at": clock.now(),
    }
    return SlackQuestion.objects.create(**facts | columns)


def test_the_list_and_the_page_show_the_task_and_the_state(viewer: Client, workspace: SlackWorkspace) -> None:
    older = uuid7_at(clock.now() - timedelta(seconds=1))
    failed = question(workspace, "failed", id=older, task_id="task-1", problem="Slack refuses the reply: <i>no</i>")
    waiting = question(workspace)
    assert listed(viewer, "slackquestion") == [waiting.pk, failed.pk]
    assert listed(viewer, "slackquestion", state="failed") == [failed.pk]
    assert listed(viewer, "slackquestion", q=failed.event_id) == [failed.pk]
    page = viewer.get(reverse("admin:tasks_app_slackquestion_change", args=[failed.pk])).content.decode()
    assert "task-1" in page
    assert "&lt;i&gt;no" in page
    assert "why?" not in page, "the words of a question are in its task"
    assert viewer.post(reverse("admin:tasks_app_slackquestion_changelist"), {"action": "drop"}).status_code == 403


def test_an_operator_sends_again_and_drops_in_the_admin(admin: Client, workspace: SlackWorkspace) -> None:
    failed, waiting = question(workspace, "failed", reply="the answer"), question(workspace)
    assert messages_of(act(admin, "slackquestion", "send_again", failed.pk)) == ["Sent again: 1 Slack question."]
    assert messages_of(act(admin, "slackquestion", "drop", waiting.pk)) == ["Dropped: 1 Slack question."]
    again = messages_of(act(admin, "slackquestion", "drop", waiting.pk))
    assert again == [f"{waiting.pk}: It cannot be done: the question is dropped."]
    failed.refresh_from_db()
    waiting.refresh_from_db()
    assert (failed.state, failed.reply, failed.due_at is None) == ("replying", "the answer", False)
    assert (waiting.state, waiting.text, waiting.due_at) == ("dropped", "", None)
    acts = Act.objects.filter(kind="Slack question").order_by("id").values_list("verb", "object_id")
    assert list(acts) == [("send_again", failed.pk), ("drop", waiting.pk)]


def test_the_page_of_a_workspace_has_no_secret(admin: Client, workspace: SlackWorkspace) -> None:
    page = admin.get(reverse("admin:tasks_app_slackworkspace_change", args=[workspace.pk])).content.decode()
    assert TEAM in page
    assert "its own" in page
    for text in (TOKEN, SECRET, workspace.bot_token, workspace.signing_secret):
        assert text not in page
    assert messages_of(act(admin, "slackworkspace", "disable", str(workspace.pk)))
    workspace.refresh_from_db()
    assert workspace.disabled_at is not None


def test_a_workspace_is_added_by_command(
    there: Slack, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{TOKEN}\n{SECRET}\n"))
    (line,) = printed("a2a", "slack", "add", "--principal", "slack", "--tenant", "acme", "--agent", "echo")
    assert (line["team_id"], line["name"], line["tenant"], line["agent"]) == (TEAM, "Taskdesk", "acme", "echo")
    row = SlackWorkspace.objects.get()
    assert (unseal(row.bot_token), unseal(row.signing_secret), row.bot_user_id) == (TOKEN, SECRET, "U0BOT")
    assert TOKEN not in str(line)
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{OTHER}\n{SECRET}\n"))
    printed("a2a", "slack", "add", "--principal", "slack", "--tenant", "acme")
    assert unseal(SlackWorkspace.objects.get().bot_token) == OTHER
    assert TOKEN not in str(list(Act.objects.values_list("before", "after")))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "each on a line of its own"),
        ("sk-1234567890", "A bot token begins with xoxb-"),
        (TOKEN, "There is no signing secret"),
        (f"{TOKEN}\nno secret!", "letters and digits alone"),
    ],
)
def test_wrong_secrets_are_refused_without_being_repeated(
    there: Slack, monkeypatch: pytest.MonkeyPatch, text: str, words: str
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    output = run("a2a", "slack", "add", "--principal", "slack")
    assert output.code == 1
    assert words in output.errors
    assert "1234567890" not in output.errors
    assert not SlackWorkspace.objects.exists()


def test_the_commands_check_map_and_switch(there: Slack, workspace: SlackWorkspace) -> None:
    assert [line["team_id"] for line in printed("a2a", "slack", "list")] == [TEAM]
    assert printed("a2a", "slack", "check") == [{"team_id": TEAM, "name": "Taskdesk"}]
    there.script["auth.test"] = [Answer(body={"ok": False, "error": "token_revoked"})]
    output = run("a2a", "slack", "check")
    assert (output.code, output.lines[0]["problem"]) == (1, "Slack refuses the bot token: token_revoked")
    (line,) = printed("a2a", "slack", "map", TEAM, "U0ADA", "--principal", "ada", "--tenant", "acme")
    assert line["users"] == [{"user": "U0ADA", "principal": "ada", "tenant": "acme"}]
    (line,) = printed("a2a", "slack", "unmap", TEAM, "U0ADA")
    assert line["users"] == []
    assert run("a2a", "slack", "map", TEAM, "ada", "--principal", "ada").code == 1
    assert printed("a2a", "slack", "disable", TEAM)[0]["disabled_at"]
    assert printed("a2a", "slack", "enable", TEAM)[0]["disabled_at"] is None
    assert run("a2a", "slack", "disable", "T0NONE").code == 1
    verbs = Act.objects.filter(kind="Slack workspace").order_by("id").values_list("verb", flat=True)
    assert list(verbs) == ["make", "map", "unmap", "disable", "enable"]


def test_the_commands_list_questions_and_act_on_them(workspace: SlackWorkspace) -> None:
    failed = question(workspace, "failed", task_id="task-1", reply="the answer")
    question(workspace)
    (line,) = printed("a2a", "slack", "questions", "--state", "failed")
    assert (line["id"], line["task_id"], line["workspace"], line["owner"]) == (failed.pk, "task-1", TEAM, "slack")
    assert [each["id"] for each in printed("a2a", "slack", "questions", "--task", "task-1")] == [failed.pk]
    assert printed("a2a", "slack", "send-again", failed.pk) == [{"id": failed.pk, "done": "send-again"}]
    output = run("a2a", "slack", "drop", failed.pk, "nothing")
    assert output.code == 1
    assert output.lines == [
        {"id": failed.pk, "done": "drop"},
        {"id": "nothing", "refused": "There is no such question."},
    ]


def test_the_api_does_the_same(there: Slack, workspace: SlackWorkspace) -> None:
    waiting = question(workspace)
    viewer, worker, administrator = program(VIEWER), program(OPERATOR), program(ADMINISTRATOR)
    (row,) = viewer.get("slack-questions/?state=waiting").json()["results"]
    assert (row["id"], row["workspace"], row["state"]) == (waiting.pk, TEAM, "waiting")
    assert viewer.post(f"slack-questions/{waiting.pk}/drop/").status_code == 403
    assert worker.post(f"slack-questions/{waiting.pk}/drop/").json()["state"] == "dropped"
    assert worker.post(f"slack-questions/{waiting.pk}/send-again/").status_code == 409
    shown = viewer.get(f"slack-workspaces/{workspace.pk}/").json()
    assert (shown["team_id"], shown["has_own_signing_secret"], shown["users"]) == (TEAM, True, [])
    assert worker.post(f"slack-workspaces/{workspace.pk}/disable/").status_code == 403
    assert administrator.post(f"slack-workspaces/{workspace.pk}/disable/").json()["disabled_at"]
    assert not [text for text in (TOKEN, SECRET, workspace.bot_token) if text in str(shown)]


def test_the_workspace_of_another_tenant_stays(there: Slack, workspace: SlackWorkspace, owner: Person) -> None:
    elsewhere = program(ADMINISTRATOR, reach=NamedReach(tenants=("home",)))
    wish = {"bot_token": TOKEN, "principal": "other", "tenant": "home", "signing_secret": SECRET}
    answer = elsewhere.post("slack-workspaces/", **wish)
    assert answer.status_code == 400
    assert "outside your reach" in str(answer.json())
    assert "acme" not in str(answer.json())
    row = SlackWorkspace.objects.get()
    assert (row.pk, row.principal_id, row.bot_token) == (workspace.pk, workspace.principal_id, workspace.bot_token)
    everywhere = program(ADMINISTRATOR)
    assert everywhere.post("slack-workspaces/", **wish).status_code < 300
    assert SlackWorkspace.objects.get().principal.tenant.name == "home"


def test_questions_of_another_tenant_are_not_found(workspace: SlackWorkspace, owner: Person) -> None:
    waiting = question(workspace)
    elsewhere = program(OPERATOR, reach=NamedReach(tenants=("home",)))
    assert elsewhere.get("slack-questions/").json()["results"] == []
    unknown = elsewhere.get("slack-questions/nothing/")
    assert elsewhere.get(f"slack-questions/{waiting.pk}/").json()["detail"] == unknown.json()["detail"]


def test_the_doctor_finds_questions_that_no_process_answers(workspace: SlackWorkspace, hand: Hand) -> None:
    waiting = question(workspace)
    assert not list(examine_work(clock.shared()))
    hand.on(seconds=600)
    (finding,) = examine_work(clock.shared())
    assert finding.subject == waiting.pk
    assert "A2A_SLACK=true" in finding.remedy
