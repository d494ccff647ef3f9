"""Files of tasks: operators get links, which expire, and never the references, which are secrets."""

import pytest
from django.test import Client
from django.urls import reverse

from a2a.events import ArtifactAdded
from a2a.files import SCHEME, reference
from a2a.types import Artifact, Part
from tasks_app.models import Chunk, PhaseTask, Principal, SharedStream, Workflow
from tasks_app.operators.roles import VIEWER
from tests.operators.people import program
from tests.operators.tenants import Furniture
from tests.support.commands import text_of
from tests.support.operators import exchange, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
FILE = reference("20261128", "ab" * 16, "plan.pdf")


def check(*texts: str) -> None:
    for text in texts:
        assert "/plan.pdf?until=" in text
        assert SCHEME not in text


def test_a_call_is_shown_with_links(olga: Principal, admin_client: Client) -> None:
    artifact = Artifact(artifact_id="a", parts=(Part(url=FILE, filename="plan.pdf"),))
    row = task(olga, ArtifactAdded(artifact=artifact, append=False, last_chunk=False))
    call = exchange(olga, "{}", task_id=row.pk, context_id=row.context_id, envelope="jsonrpc", last_seq=2)
    page = admin_client.get(reverse("admin:tasks_app_exchange_change", args=[call.pk])).content.decode()
    shown = program(VIEWER).get(f"exchanges/{call.pk}/").content.decode()
    check(page, shown, text_of("exchanges", call.pk, "--bodies"))


def test_a_workflow_and_a_shared_stream_are_shown_with_links() -> None:
    rows, robot, part = Furniture("acme", "mine7").rows, program(VIEWER), f'{{"url":"{FILE}"}}'
    PhaseTask.objects.update(artifacts=f'[{{"artifactId":"a","parts":[{part}]}}]')
    Chunk.objects.update(parts=f"[{part}]")
    for noun, row in (("workflows", rows[Workflow]), ("shared-streams", rows[SharedStream])):
        check(robot.get(f"{noun}/{row.pk}/").content.decode(), text_of("a2a", noun, "show", row.pk))
