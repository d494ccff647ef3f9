"""Pages that show what callers wrote: nothing of it is run, hidden or too long."""

import orjson
import pytest
from django.test import Client
from django.urls import reverse

from a2a.events import ArtifactAdded, StatusChanged
from a2a.states import TaskState
from a2a.types import Artifact, Part
from tasks_app.admin import text
from tasks_app.models import Exchange, Principal, Run
from tests.support.operators import NOW, exchange, status, task
from tests.transports.admin.pages import act, page

pytestmark = pytest.mark.django_db
HOSTILE = '<script>alert("x")</script>\u202e<img src=x onerror=alert(1)>'


def test_hostile_content_is_escaped_everywhere(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    call = exchange(olga, orjson.dumps({"x": HOSTILE}).decode(), rpc_id=HOSTILE, method=HOSTILE, request_id=HOSTILE)
    answers[call.pk] = HOSTILE
    row = task(
        olga,
        ArtifactAdded(
            artifact=Artifact(artifact_id=HOSTILE, name=HOSTILE, parts=(Part(text=HOSTILE), Part(url=HOSTILE)))
        ),
        StatusChanged(status=status(TaskState.FAILED, HOSTILE)),
        words=HOSTILE,
        context_id=HOSTILE,
        agent=HOSTILE,
    )
    Exchange.objects.filter(pk=call.pk).update(task_id=row.pk)
    Run.objects.create(task=row, fence=1, worker=HOSTILE, ended_at=NOW, outcome="failed", traceback=HOSTILE)
    Principal.objects.filter(pk=olga.pk).update(name=HOSTILE[:60])
    lists = [reverse(f"admin:tasks_app_{model}_changelist") for model in ("exchange", "task")]
    shown = [page(admin, "exchange", call.pk), page(admin, "task", row.pk)]
    shown += [admin.get(address, query).content.decode() for address in lists for query in ({}, {"q": HOSTILE})]
    shown.append(act(admin, "task", "cancel_selected", row.pk, confirmed=False).content.decode())
    for content in shown:
        assert "<script>alert" not in content
        assert "<img src=x" not in content
        # The search box has the text as it was typed. Everywhere else invisible characters are shown.
        assert "\u202e" not in content.replace(f'value="{escaped(HOSTILE)}"', "")


def escaped(value: str) -> str:
    return value.replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def test_hidden_characters_are_written_out() -> None:
    assert (
        text.reveal("a\0b\x1b[31m\u202ec\u2066d\ufeffe\r\nf\tg") == "a\\u0000b\\u001b[31m\\u202ec\\u2066d\\ufeffe\nf\tg"
    )
    assert text.reveal("שלום नमस्ते 👩‍👧") == "שלום नमस्ते 👩‍👧"


def test_huge_bodies_are_cut_with_a_line_saying_so(admin: Client, olga: Principal, answers: dict[str, str]) -> None:
    row = exchange(olga, "x" * 900_000)
    answers[row.pk] = orjson.dumps([["y"]] * 200_000).decode()
    answer = admin.get(reverse("admin:tasks_app_exchange_change", args=[row.pk]))
    assert len(answer.context["request_text"]) == len(answer.context["response"]) == text.PANE
    assert answer.content.decode().count("Only the first 200 kB are shown") == 2
    huge = task(
        olga,
        ArtifactAdded(artifact=Artifact(artifact_id="a", parts=(Part(text="z" * 900_000),))),
        words="\0" * 900_000,
    )
    shown = page(admin, "task", huge.pk)
    assert len(shown) < 700_000
    assert "Only the first 200 kB" in shown
    assert "Only the newest 200 kB" in shown


def test_pages_hold_no_inline_script_and_no_inline_style(
    admin: Client, olga: Principal, answers: dict[str, str]
) -> None:
    row, call = task(olga), exchange(olga)
    for shown in (
        page(admin, "task", row.pk),
        page(admin, "exchange", call.pk),
        admin.get(reverse("admin:tasks_app_task_changelist")).content.decode(),
        act(admin, "task", "cancel_selected", row.pk, confirmed=False).content.decode(),
    ):
        assert "<style" not in shown
        assert " style=" not in shown
        assert " onclick=" not in shown
        assert shown.count("<script") == shown.count("<script src=") + shown.count("<script\n") + shown.count(
            "<script id="
        )
        assert "taskdesk/admin.css" in shown
