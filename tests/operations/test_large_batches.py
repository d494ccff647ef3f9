"""Batches about large tasks: an item has as much as its task, while the call that names the task is small."""

from typing import Any

import pytest
from django.conf import LazySettings

from a2a.batches import BatchInput
from tasks_app.batches import results as pages
from tasks_app.batches.results import results_of
from tasks_app.limits.accounts import account
from tasks_app.models import Batch, BatchItem
from tasks_app.off_loop import LARGE
from tasks_app.operations import batch_items
from tests.conftest import Person
from tests.operations.asking import sent
from tests.operations.batching import ended, execute, results

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
TEXT = "much " * LARGE


def test_items_about_large_tasks_begin_as_far_as_the_owner_has_room_for_their_bytes(
    owner: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = sent(owner, TEXT, agent="form-coroutine")
    settings.A2A_OWNER_BODY_BYTES = 3 * len(TEXT)  # A task has its message and its result.
    key, perform, amounts, sizes = ("bodies", owner.caller.owner_id), batch_items.perform, set[int](), set[int]()

    async def spy(request: Any, context: Any) -> object:
        amounts.add(account.amounts[key])
        sizes.add(context.exchange.request_bytes)
        return await perform(request, context)

    monkeypatch.setattr(batch_items, "perform", spy)
    batch = execute(owner, *[BatchInput(task_id=given.id)] * 6, "a message", max_concurrent=7)
    (*about, plain) = results(ended(owner, batch.id))
    assert [one["state"] for one in (*about, plain)] == ["completed"] * 7
    assert 2 * len(TEXT) < max(sizes) <= settings.A2A_OWNER_BODY_BYTES, "it has the size of the task"
    assert max(amounts) == max(sizes), "one at a time"
    assert account.amounts[key] == 0


def test_results_of_large_tasks_are_read_and_written_a_few_at_a_time(
    owner: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_BATCH_RESULT_CHARACTERS = 10 * len(TEXT)
    monkeypatch.setattr(pages, "TOGETHER", 5 * len(TEXT))
    task = ended(owner, execute(owner, *[TEXT + str(place) for place in range(5)], "a", "b").id)
    assert [one["output"] for one in results(task)] == [*([TEXT + str(place)] for place in range(5)), ["a"], ["b"]]
    items = list(BatchItem.objects.order_by("place"))
    assert [len(results_of(items[first:])) for first in (0, 2, 4, 6)] == [2, 2, 3, 1]
    monkeypatch.setattr(pages, "TOGETHER", 1)
    assert len(results_of(items)) == 1, "one at least"
    assert Batch.objects.get().due_at is None
