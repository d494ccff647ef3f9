"""Pages of tasks: log, messages, artifacts, runs and calls."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a.events import ArtifactAdded, MessageAdded, StatusChanged
from a2a.states import TaskState
from a2a.types import Artifact, Part
from tasks_app.admin import timeline
from tasks_app.models import Event as Row
from tasks_app.models import Exchange, Principal, Run
from tests.support.operators import NOW, exchange, message, status, task
from tests.transports.admin.pages import page

pytestmark = pytest.mark.django_db


def test_a_task_shows_its_log_its_messages_artifacts_runs_and_calls(admin: Client, olga: Principal) -> None:
    call = exchange(olga)
    row = task(
        olga,
        StatusChanged(status=status(TaskState.WORKING, "counting")),
        ArtifactAdded(artifact=Artifact(artifact_id="a1", name="numbers", parts=(Part(text="one "),))),
        ArtifactAdded(artifact=Artifact(artifact_id="a1", parts=(Part(text="two"),)), append=True, last_chunk=True),
        ArtifactAdded(
            artifact=Artifact(
                artifact_id="a2",
                parts=(
                    Part(data={"three": 3}),
                    Part(raw=b"\0" * 1500, filename="three.bin", media_type="application/octet-stream"),
                    Part(url="javascript:alert(1)"),
                    Part(url="taskdesk-file:20261121-" + "0" * 32 + "/x.pdf", filename="<b>x.pdf"),
                    Part(url="taskdesk-file:nonsense"),
                ),
            )
        ),
        StatusChanged(status=status(TaskState.FAILED, "lost count")),
        exchange_id=call.pk,
    )
    Exchange.objects.filter(pk=call.pk).update(task_id=row.pk)
    Run.objects.create(
        task=row, fence=1, worker="w1", ended_at=NOW, outcome="failed", reference="ref-9", traceback="Traceback: boom"
    )
    shown = page(admin, "task", row.pk)
    for expected in (
        "created → submitted: “count to three”",
        "→ working: “counting”",
        "artifact numbers written: “one”",
        "artifact a1 continued: “two”, last chunk",
        "→ failed: “lost count”",
        "one two",
        "&quot;three&quot;: 3",
        "three.bin, application/octet-stream",
        "1.5 kB",
        "javascript:alert(1)",
        "ref-9",
        "Traceback: boom",
        "count to three",
        reverse("admin:tasks_app_exchange_change", args=[call.pk]),
    ):
        assert expected in shown, expected
    assert 'href="javascript' not in shown
    assert 'href="/files/20261121-' in shown
    assert "<b>x.pdf" not in shown
    assert 'href="taskdesk' not in shown


def test_a_follow_up_message_is_in_the_timeline_and_in_the_history(admin: Client, olga: Principal) -> None:
    row = task(
        olga,
        StatusChanged(status=status(TaskState.INPUT_REQUIRED, "how far?")),
        MessageAdded(message=message("to five"), status=status(TaskState.SUBMITTED)),
    )
    shown = page(admin, "task", row.pk)
    assert "user message → submitted: “to five”" in shown
    assert shown.count("how far?") >= 2


def test_a_long_log_shows_its_newest_events(admin: Client, olga: Principal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timeline, "NEWEST", 3)
    row = task(olga, *(StatusChanged(status=status(TaskState.WORKING, f"step {n}")) for n in range(5)))
    answer = admin.get(reverse("admin:tasks_app_task_change", args=[row.pk]))
    assert [event["seq"] for event in answer.context["events"]] == [4, 5, 6]
    assert "3 older ones are not shown" in answer.content.decode()


def test_a_task_whose_log_is_broken_still_has_a_page(admin: Client, olga: Principal) -> None:
    row = task(olga, StatusChanged(status=status(TaskState.WORKING)), status="not json")
    Row.objects.filter(task_id=row.pk).update(payload='{"odd":1}')
    assert "cannot be shown" in page(admin, "task", row.pk)
