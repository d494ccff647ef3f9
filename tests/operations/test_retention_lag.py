"""The lag of deleting tells the truth about rows that a pass has stepped over."""

import re
import time
from typing import Any

import pytest

from tasks_app import clock
from tasks_app.models import Delivery, IdempotencyKey, Task, Webhook
from tasks_app.upkeep import retention as module
from tasks_app.upkeep.processes import process_row
from tasks_app.upkeep.retention import Retention, troubles
from tests.conftest import Person
from tests.database.locks import lock_row, needs_row_locks
from tests.operations.old_rows import DAY, complete, fill, of, purged

pytestmark = [pytest.mark.django_db, pytest.mark.storage, pytest.mark.usefixtures("own_entry")]


def look_again(retention: Retention, seconds: float) -> None:
    """Have the passes look for rows that were stepped over, with their start and the last look so long ago."""
    for kind_pass in retention.passes:
        kind_pass.began = kind_pass.looked = kind_pass.clear_at = time.monotonic() - seconds


def test_the_lag_counts_rows_passed_over_which_the_next_round_deletes(owner: Person) -> None:
    fill(owner, 1, 31 * DAY, open_=True)
    fill(owner, 1, 30.5 * DAY)
    retention = Retention()
    retention.run_round()
    complete(Task.objects.get().pk, clock.now() - 31 * DAY)
    look_again(retention, 40)
    retention.run_round()
    assert (Task.objects.count(), (process_row.lag or 0) >= 40) == (1, True)
    retention.run_round()
    assert (Task.objects.count(), process_row.lag) == (0, 0.0)


def test_a_task_that_waits_for_its_delivery_is_not_late(owner: Person) -> None:
    fill(owner, 1, 31 * DAY)
    id, now = Task.objects.get().pk, clock.now()
    values: dict[str, Any] = {"task_id": id, "version": "1.0", "created_at": now}
    hook = Webhook.objects.create(id="h", name="h", url="http://x/", host="x", updated_at=now, **values)
    Delivery.objects.create(id="d", webhook=hook, seq=1, body="{}", state="waiting", **values)
    Task.objects.update(pushes=True)
    retention = Retention()
    retention.run_round()
    assert (Task.objects.count(), process_row.lag) == (1, 0.0)
    assert of(purged("--dry-run"), "would_delete")["tasks"] == 0


@needs_row_locks
@pytest.mark.django_db(transaction=True)
def test_locked_rows_are_reported_with_the_reason(owner: Person, lanes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(owner, 1, 31 * DAY)
    retention = Retention()
    monkeypatch.setattr(module, "retention_routine", retention)
    with lock_row("idempotencykey", "key", IdempotencyKey.objects.get().key):
        look_again(retention, 90)
        retention.run_round()
        (sentence,) = troubles()
        assert re.search(r"deleted \d+ s after their time: other transactions have locked message_ids; end", sentence)
    retention.run_round()
    assert (IdempotencyKey.objects.count(), process_row.lag, troubles()) == (0, 0.0, [])


@needs_row_locks
@pytest.mark.django_db(transaction=True)
def test_a_row_that_stays_locked_starts_a_pass_again_every_half_minute(owner: Person, lanes: None) -> None:
    fill(owner, 2, 31 * DAY)
    first, last = IdempotencyKey.objects.order_by("created_at").values_list("key", flat=True)
    retention = Retention()
    (keys,) = [each for each in retention.passes if each.kind.name == "message_ids"]
    with lock_row("idempotencykey", "key", first):
        retention.run_round()
        began, place = keys.began, keys.deletion.place
        retention.run_round()
        assert (keys.steps_over, keys.began, keys.deletion.place) == (True, began, place)
        look_again(retention, 40)
        retention.run_round()
        assert keys.began > began
    assert [row.key for row in IdempotencyKey.objects.all()] == [first] != [last]
