"""Batches whose items are refused for the moment: they go on once the limit lets them, and try seldom until then."""

import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings

from a2a.errors import RateLimited
from tasks_app.batches.rows import take_turns
from tasks_app.limits import accounts
from tasks_app.models import Batch, Task
from tasks_app.operations import batch_steps
from tasks_app.operations.batch_steps import advance
from tests.conftest import PATIENCE, Person
from tests.operations.batching import execute, keep_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_a_batch_goes_on_when_its_own_items_have_freed_the_limit(
    owner: Person, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Execute a batch of quick work for an owner who may have three unfinished tasks, one of which is the batch."""
    settings.A2A_OWNER_TASKS, settings.A2A_SWEEP_SECONDS = 3, 0.2
    monkeypatch.setattr(accounts, "LONGEST", 3 * PATIENCE)
    batch = execute(owner, *"abcde").id
    keep_until(lambda: Batch.objects.get(pk=batch).due_at is None, "the batch is over")
    assert set(Task.objects.values_list("state", flat=True)) == {"completed"}


def test_one_item_of_a_batch_tries_after_a_refusal(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    execute(owner, *"abcdefgh")
    tries = list[int]()

    async def refuse(turn: object, item: object) -> RateLimited:
        tries[-1] += 1
        return RateLimited(60)

    monkeypatch.setattr(batch_steps, "send_item", refuse)
    Batch.objects.update(due_at="2000-01-01T00:00:00Z")
    (turn,) = take_turns(1, ())
    for is_probe in (False, True):
        tries.append(0)
        step = async_to_sync(advance)(turn, is_probe=is_probe)
        assert step is not None
        assert step.is_refused
    assert tries == [8, 1]


def test_a_bad_item_of_a_batch_is_no_refusal_for_the_moment(owner: Person) -> None:
    execute(owner, *"ab", operation="form-coroutine")
    Batch.objects.update(due_at="2000-01-01T00:00:00Z", operation="gone", agent="gone")
    (turn,) = take_turns(1, ())
    step = async_to_sync(advance)(turn)
    assert step is not None
    assert step.pause
    assert not step.is_refused
