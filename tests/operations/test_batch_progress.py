"""The reports of progress in the status of a batch."""

import json

import pytest
from asgiref.sync import async_to_sync

from a2a.states import TaskState
from tasks_app.batches.results import STEPS, has_news
from tasks_app.batches.rows import take_turns
from tasks_app.models import Batch, Event, Task
from tasks_app.operations import batch_steps
from tasks_app.operations.batch_steps import advance
from tests.conftest import Person, until
from tests.operations.batching import ended, execute, results

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.requirement("SPARC-08")
@pytest.mark.parametrize("size", [1, 2, 19, 20, 21, 39, 40, 41, 500, 999])
def test_a_batch_reports_its_progress_so_often_at_most_and_at_its_end(size: int) -> None:
    reports = [end for end in range(1, size + 1) if has_news(end - 1, end, size)]
    assert len(reports) <= STEPS
    assert reports[-1] == size
    assert len(reports) >= min(size, STEPS // 2)


def test_a_batch_reports_no_number_twice_when_many_items_end_at_once(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_steps, "PAGE", 2)
    batch = execute(owner, *"abcdefghijkl", max_concurrent=12, batch_size=12)
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    async_to_sync(advance)(turn)
    items = Task.objects.filter(agent="form-coroutine", state=TaskState.COMPLETED)
    until(lambda: items.count() == 12, "all items have ended")
    task = ended(owner, batch.id)
    assert [result["output"] for result in results(task)] == [[letter] for letter in "abcdefghijkl"]
    events = Event.objects.filter(task_id=batch.id).order_by("seq")
    statuses = [json.loads(row.payload).get("status", {}) for row in events]
    reports = [one["message"] for one in statuses if "message" in one]
    assert [one["metadata"]["progress"]["ended"] for one in reports] == [12], "that of the end"
