"""The reading of a workflow: of its results, which may be large, those that are shown; and the answers to changes."""

import pytest
from django.conf import LazySettings
from django.db import connection
from django.test.utils import CaptureQueriesContext

from a2a.errors import InvalidParams
from a2a.states import TaskState
from a2a.workflows import ExecuteWorkflow, Phase, SendInPhase, SetPhase
from tasks_app.models import PhaseTask
from tasks_app.workflows import log
from tasks_app.workflows.log import Wish
from tasks_app.workflows.reading import document_of
from tests.conftest import Person
from tests.operations.asking import ask, message
from tests.operations.reads import beside_reads

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.mark.parametrize("with_results", [True, False])
def test_a_workflow_is_read_with_the_results_that_are_shown(owner: Person, with_results: bool) -> None:
    row = log.enter(Wish(name="w", phase=None), owner.caller, None)
    for number in range(3):
        log.add_task(row.pk, Phase.SPECIFICATION, f"t-{number}", "echo")
        log.settle(PhaseTask.objects.get(task_id=f"t-{number}").pk, TaskState.COMPLETED, f'["{number}"]')
    with CaptureQueriesContext(connection) as queries:
        found = document_of(row, with_results=with_results).phases[0]
    assert (found.artifacts, len(found.tasks)) == ('["2"]' if with_results else None, 3)
    reads = [query["sql"] for query in queries if "artifacts" in query["sql"]]
    assert len(reads) == with_results
    assert all("workflow_id" not in sql.partition("WHERE")[2] for sql in reads)


@pytest.mark.parametrize("places", [(0, 1, 2), (2, 0, 1)], ids=["in order", "out of order"])
def test_a_workflow_keeps_the_result_of_the_last_task_of_each_phase_alone(
    owner: Person, places: tuple[int, ...]
) -> None:
    row = log.enter(Wish(name="w", phase=None), owner.caller, None)
    for phase in (Phase.SPECIFICATION, Phase.PSEUDOCODE):
        for place in range(3):
            log.add_task(row.pk, phase, f"{phase}-{place}", "echo")
        for place in places:
            log.settle(PhaseTask.objects.get(task_id=f"{phase}-{place}").pk, TaskState.COMPLETED, f'["{place}"]')
    kept = PhaseTask.objects.filter(artifacts__isnull=False).order_by("pk").values_list("task_id", "artifacts")
    assert list(kept) == [("specification-2", '["2"]'), ("pseudocode-2", '["2"]')]


def test_a_workflow_has_so_many_tasks_at_most(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    """A read of a workflow reads all its tasks, and an operator all their results."""
    monkeypatch.setattr(log, "MAX_TASKS", 2)
    row = log.enter(Wish(name="w", phase=None), owner.caller, None)
    for place in range(2):
        ask(owner, SetPhase(workflow="w", phase=Phase.SPECIFICATION))
        log.add_task(row.pk, Phase.SPECIFICATION, f"t-{place}", "echo")
    for request in (
        SendInPhase(workflow="w", message=message()),
        ExecuteWorkflow(workflow="w", message=message()),
    ):
        with pytest.raises(InvalidParams) as refusal:
            ask(owner, request)
        assert refusal.value.violations[0][0] == "workflowId"
    assert PhaseTask.objects.count() == 2


def test_a_workflow_with_all_its_tasks_changes_its_phase(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_TASKS", 1)
    row = log.enter(Wish(name="w", phase=None), owner.caller, None)
    log.add_task(row.pk, Phase.SPECIFICATION, "t", "echo")
    assert ask(owner, SetPhase(workflow="w", phase=Phase.PSEUDOCODE)).phase is Phase.PSEUDOCODE


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize(
    "wish",
    [SetPhase(workflow="w", phase=Phase.SPECIFICATION), ExecuteWorkflow(workflow="w", message=message())],
)
def test_a_change_that_is_written_is_answered_whatever_its_caller_reads(
    owner: Person, settings: LazySettings, wish: SetPhase | ExecuteWorkflow
) -> None:
    assert beside_reads(owner, settings, lambda: ask(owner, wish)).name == "w"
