"""Bodies are made from the log when they are sent; those that are whole tasks stay linear in its size."""

import threading
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper
from django.test.utils import CaptureQueriesContext

from a2a.events import Event, MessageAdded
from a2a.states import TaskState
from a2a.types import Message, Part, Role, Status
from a2a.types import Task as TaskValue
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.tables import DELIVERIES, Table
from tasks_app.event_log import GROWTH, bodies
from tasks_app.event_log.bodies import Fold, Folds, MakeBody, body_of
from tasks_app.models import Delivery, Webhook
from tasks_app.models import Event as Row
from tasks_app.webhooks import give_up, leases, readable_body, send_again
from tasks_app.webhooks.heads import REST_RATE, STEPS_BYTES
from tasks_app.webhooks.limits import Busy
from tests.conftest import PATIENCE, Person
from tests.operations.rows import addition, chunk, status
from tests.operations.webhooks import DONE, OPS, WORKS, happens, hook, hooked, pump, seqs, task
from tests.support.hand import Hand
from tests.support.receiver import Receiver, Reply

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("loopback")]
LARGE = STEPS_BYTES // 4
"""Characters of an update after a few of which a webhook does not get every step."""


def says(text: str) -> Event:
    return status(TaskState.WORKING, text)


def answers(text: str) -> Event:
    """Return the caller's next message, which makes the task runnable again."""
    said = Message(message_id=text, role=Role.USER, parts=(Part(text=text),))
    return MessageAdded(message=said, status=Status(state=TaskState.SUBMITTED, timestamp=clock.now()))


def posted(there: Receiver) -> int:
    return sum(len(got.raw) for got in there.got)


def logged(task_id: str) -> int:
    return sum(Row.objects.filter(task_id=task_id).values_list("size", flat=True))


def outcomes() -> dict[int, str]:
    return dict(Delivery.objects.order_by("seq").values_list("seq", "state"))


@pytest.fixture
def large(lanes: None, owner: Person, there: Receiver, hand: Hand) -> str:
    """Return a task whose webhook has had its share of small steps."""
    task_id = hooked(owner, there.url, "0.3")
    happens(task_id, WORKS)
    for place in range(4):
        happens(task_id, says(f"{place}" * LARGE))
        pump()
    assert Webhook.objects.get().rests_until is not None
    there.got.clear()
    return task_id


# ----------------------------------------------------------------- what is sent


def test_the_row_of_a_delivery_does_not_grow_with_its_task(lanes: None, owner: Person) -> None:
    task_id = hooked(owner, "http://127.0.0.1:65001/", "0.3", id="old")
    hook(owner, task_id, "http://127.0.0.1:65001/", "1.0", id="new")
    happens(task_id, chunk("x" * 100_000), WORKS, DONE)
    assert set(Delivery.objects.values_list("body", flat=True)) == {None}


@pytest.mark.parametrize("version", ["0.2", "0.3"])
def test_the_bodies_of_a_chatty_task_are_linear_in_its_log(
    lanes: None, owner: Person, there: Receiver, hand: Hand, version: str
) -> None:
    task_id = hooked(owner, there.url, version)
    happens(task_id, WORKS)
    for place in range(60):
        happens(task_id, says(f"{place} " + "x" * 50_000))
        pump()
    happens(task_id, DONE)
    pump()
    log, most = logged(task_id), max(len(got.raw) for got in there.got)
    # After the first few, a body comes when the log has grown by a part of the last body. The end always comes.
    assert posted(there) <= STEPS_BYTES + (GROWTH + 3) * log
    assert most >= log * 0.8
    assert there.got[-1].json["status"]["state"] == "completed"
    assert len(there.got[-1].json["history"]) == 60
    assert seqs(there) == sorted(seqs(there))
    assert set(outcomes().values()) == {"delivered", "superseded"}


def test_a_small_task_is_told_step_by_step(lanes: None, owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url, "0.3")
    happens(task_id, WORKS, says("one"), says("two"), DONE)
    pump()
    assert seqs(there) == [2, 3, 4, 5]


def test_an_interim_update_of_a_large_task_waits_and_the_newest_is_sent(
    large: str, there: Receiver, hand: Hand
) -> None:
    happens(large, says("six"), says("seven"))
    pump()
    assert there.got == []
    row = Webhook.objects.get()
    assert row.due_at == row.rests_until
    hand.on(seconds=row.body_bytes / REST_RATE)
    pump()
    assert seqs(there) == [8]
    assert there.got[0].json["status"]["message"]["parts"][0]["text"] == "seven"
    left_out = Delivery.objects.get(seq=7)
    assert (left_out.state, left_out.attempt, "later delivery" in left_out.error) == ("superseded", 0, True)


def test_an_update_does_not_wait_once_the_log_has_grown(large: str, there: Receiver, hand: Hand) -> None:
    happens(large, says("six"))
    pump()
    assert there.got == []
    happens(large, chunk("x" * (Webhook.objects.get().body_bytes // GROWTH)), says("eight"))
    pump()
    assert seqs(there) == [9]


@pytest.mark.parametrize("state", [TaskState.INPUT_REQUIRED, TaskState.AUTH_REQUIRED, TaskState.COMPLETED])
def test_the_end_and_a_question_of_a_large_task_are_told_at_once(large: str, there: Receiver, state: TaskState) -> None:
    happens(large, says("six"), status(state))
    pump()
    assert seqs(there) == [8]
    assert outcomes()[7] == "superseded"


def test_a_question_and_its_answer_are_both_told_although_the_end_is_there(large: str, there: Receiver) -> None:
    happens(large, says("six"), status(TaskState.INPUT_REQUIRED), answers("yes"), WORKS, says("ten"), DONE)
    pump()
    assert [(got.seq, got.json["status"]["state"]) for got in there.got] == [
        (8, "input-required"),
        (9, "submitted"),
        (12, "completed"),
    ]


def test_an_update_that_was_tried_is_not_superseded(large: str, there: Receiver, hand: Hand) -> None:
    there.default = Reply(503)
    hand.on(hours=1)
    happens(large, says("six"))
    pump()
    there.default = Reply()
    happens(large, says("seven"), DONE)
    hand.on(minutes=1)
    pump()
    assert seqs(there) == [7, 7, 9]
    assert there.got[0].raw == there.got[1].raw
    assert there.got[0].headers["webhook-id"] == there.got[1].headers["webhook-id"]


def test_a_gap_after_a_failed_try_is_not_cut_short_by_the_end(large: str, there: Receiver, hand: Hand) -> None:
    there.default = Reply(503)
    hand.on(hours=1)
    happens(large, says("six"))
    pump()
    due = Webhook.objects.get().due_at
    happens(large, DONE)
    assert Webhook.objects.get().due_at == due


def test_webhooks_of_1_0_get_every_event_of_a_large_task(
    lanes: None, owner: Person, there: Receiver, hand: Hand
) -> None:
    task_id = hooked(owner, there.url)
    happens(task_id, *(says("x" * LARGE) for _ in range(8)), DONE)
    pump()
    assert seqs(there) == list(range(2, 11))
    assert posted(there) <= 1.1 * logged(task_id)


def test_a_superseded_delivery_is_sent_if_an_operator_wants_it(large: str, there: Receiver) -> None:
    happens(large, says("six"), DONE)
    pump()
    there.got.clear()
    send_again([Delivery.objects.get(seq=7).pk], OPS)
    happens_not = Delivery.objects.get(seq=7)
    assert (happens_not.state, happens_not.interim) == ("waiting", False)
    pump()
    assert seqs(there) == [7]


def test_to_give_up_the_end_leaves_the_interim_update_before_it(large: str, there: Receiver, hand: Hand) -> None:
    happens(large, says("six"), DONE)
    give_up(Delivery.objects.get(seq=8).pk, OPS)
    hand.on(hours=1)
    pump()
    assert seqs(there) == [7]


# ------------------------------------------------------------ how it is made


def test_a_body_is_the_same_whether_folded_on_or_from_the_beginning(lanes: None, owner: Person) -> None:
    task_id = task(owner)
    happens(task_id, WORKS, chunk("one", append=False), says("two"), chunk("three"), says("four"), DONE)
    folds = Folds()
    for seq in (2, 4, 6, 7, 4):
        item = MakeBody(task_id=task_id, seq=seq, language="a2a-0.3")
        assert body_of(item, folds) == body_of(item), seq


def test_a_fold_goes_on_from_the_last_body(lanes: None, owner: Person) -> None:
    task_id, folds = task(owner), Folds()
    happens(task_id, WORKS, *(says(str(place)) for place in range(20)))
    body_of(MakeBody(task_id=task_id, seq=20, language="a2a-0.3"), folds)
    with CaptureQueriesContext(connection) as captured:
        body_of(MakeBody(task_id=task_id, seq=22, language="a2a-0.3"), folds)
    (folded,) = [query["sql"] for query in captured if '"seq" >' in query["sql"]]
    assert '"seq" > 20' in folded


def test_the_tasks_that_are_kept_have_an_end(lanes: None, owner: Person) -> None:
    folds, tasks = Folds(most=5_000), [task(owner) for _ in range(6)]
    for task_id in tasks:
        happens(task_id, says("x" * 1_000))
        body_of(MakeBody(task_id=task_id, seq=2, language="a2a-0.3"), folds)
    assert folds.size <= 5_000
    assert list(folds.tasks) == tasks[-len(folds.tasks) :]
    happens(tasks[-1], says("x" * 6_000))
    body_of(MakeBody(task_id=tasks[-1], seq=3, language="a2a-0.3"), folds)
    assert (folds.size, len(folds.tasks)) == (0, 0)


def test_small_tasks_that_are_kept_have_an_end_as_well() -> None:
    folds, now = Folds(most=100_000), Status(state=TaskState.COMPLETED, timestamp=clock.now())
    for number in range(1_000):
        folds.keep(f"task {number}", Fold(TaskValue(id=f"task {number}", context_id="c", status=now), 4, 40))
    assert 1 <= len(folds.tasks) <= 50


def test_a_body_that_takes_long_to_make_holds_up_no_writer(
    lanes: None, owner: Person, there: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, gate, fold = threading.Event(), threading.Event(), bodies._task_as_of

    def slowly(*arguments: Any) -> Any:
        begun.set()
        assert gate.wait(PATIENCE)
        return fold(*arguments)

    monkeypatch.setattr(bodies, "_task_as_of", slowly)
    happens(hooked(owner, there.url, "0.3"), WORKS)
    sending = threading.Thread(target=pump, daemon=True)
    sending.start()
    assert begun.wait(PATIENCE)
    # Events of other tasks are written meanwhile, with a webhook and without.
    happens(task(owner), WORKS, DONE)
    happens(hooked(owner, there.url), WORKS)
    assert there.got == []
    gate.set()
    sending.join(PATIENCE)
    assert [got.json.get("kind") for got in there.got][:1] == ["task"]


def test_a_row_with_a_body_of_its_own_is_sent_as_it_is(lanes: None, owner: Person, there: Receiver) -> None:
    task_id = hooked(owner, there.url, "0.3")
    happens(task_id, WORKS, DONE)
    # As the version before wrote them.
    Delivery.objects.filter(seq=2).update(body='{"kind":"task"}')
    assert readable_body(Delivery.objects.get(seq=2)) == '{"kind":"task"}'
    pump()
    assert [got.json.get("status", {}).get("state") for got in there.got] == [None, "completed"]


def test_turns_are_taken_in_the_same_number_of_statements_however_many(lanes: None, owner: Person, hand: Hand) -> None:
    def taken(number: int) -> int:
        for place in range(number):
            happens(hooked(owner, "http://127.0.0.1:65001/", "0.3" if place % 2 else "1.0"), WORKS)
        with CaptureQueriesContext(connection) as captured:
            assert len(leases.take("w", 64, Busy())) == number
        hand.on(minutes=1)
        Webhook.objects.all().delete()
        return len(captured)

    assert taken(8) == taken(2)


def test_deliveries_of_a_group_are_written_at_once(lanes: None, owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[int] = []
    write = Table.write

    def spy(table: Table, cursor: CursorWrapper, rows: Sequence[Any]) -> None:
        if table is DELIVERIES and rows:
            writes.append(len(rows))
        write(table, cursor, rows)

    monkeypatch.setattr(Table, "write", spy)
    for events in ([WORKS], [says(str(place)) for place in range(20)]):
        bridge.do(addition(hooked(owner, "http://127.0.0.1:65001/", "0.3"), *events, with_deliveries=True))
    assert writes == [1, 20]


def test_a_webhook_at_rest_becomes_due_by_itself(lanes: None, owner: Person, there: Receiver, hand: Hand) -> None:
    """A delivery that waits becomes due by itself, and is then sent."""
    task_id = hooked(owner, there.url, "0.3")
    happens(task_id, says("x" * STEPS_BYTES))
    pump()
    happens(task_id, says("next"))
    row = Webhook.objects.get()
    assert row.due_at
    assert row.due_at - clock.now() <= timedelta(seconds=row.body_bytes / REST_RATE)
