"""The quota of stored bytes: what counts, what is refused at it, and how an owner gets below it again."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import orjson
import pytest
from asgiref.sync import async_to_sync
from django.conf import LazySettings
from msgspec import UNSET

from a2a.batches import BatchInput, ExecuteBatch
from a2a.errors import IdempotencyConflict, RateLimited
from a2a.memory import DeleteMemory, RetrieveMemory, StoreMemory
from a2a.requests import CancelTask, EndSharedStream, GetTask, Request, SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkRole
from a2a.types import Part
from a2a.workflows import ExecuteWorkflow, Phase, SetPhase
from tasks_app import clock
from tasks_app.batches.rows import take_turns
from tasks_app.database.bridge import bridge
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.limits.quotas import REST as WAIT
from tasks_app.limits.quotas import Quota, QuotaReached, quota
from tasks_app.limits.stored import sum_stored
from tasks_app.models import (
    Batch,
    BatchItem,
    Exchange,
    ExchangeBody,
    IdempotencyKey,
    PhaseTask,
    SharedStream,
    Task,
    Workflow,
)
from tasks_app.models.exchanges import LARGE_REQUEST
from tasks_app.operations.batch_steps import advance
from tasks_app.upkeep.deletion import Deletion
from tasks_app.upkeep.quotas import REST, DoInTurn, StoredBytes, stored_bytes
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, message, send, sent
from tests.operations.batching import ended, execute, results

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
MOST = 100_000
TEXT = "x" * 10_000
QUEUED, QUICK = "form-coroutine", "quick-coroutine"


@pytest.fixture(autouse=True)
def _fresh_quota(monkeypatch: pytest.MonkeyPatch, lanes: None, settings: LazySettings) -> None:
    """Have the process know nothing yet. An owner may have 100,000 bytes stored."""
    settings.A2A_OWNER_STORED_BYTES = MOST
    monkeypatch.setattr(quota, "is_summed", True)
    monkeypatch.setattr(quota, "counted", None)
    monkeypatch.setattr(quota, "since", Counter())


def fill(person: Person, size: int = MOST) -> str:
    """Store a task of so many bytes, and a few more, and sum."""
    task = sent(person, "x" * size, agent=QUEUED, return_immediately=True)
    stored_bytes.count()
    return task.id


def refused(act: Callable[[], Any]) -> QuotaReached:
    with pytest.raises(QuotaReached) as error:
        act()
    return error.value


def size_of_tasks(person: Person) -> int:
    return sum(Task.objects.filter(owner_id=person.caller.owner_id).values_list("size", flat=True))


def purge(*kinds: str) -> None:
    """Delete all rows of these kinds, as retention and an operator do."""
    for kind in kinds:
        Deletion(ROW_KINDS[kind]).delete_next(clock.now() + timedelta(days=1), alone=False)


# ------------------------------------------------------------ what is bounded


@pytest.mark.parametrize("agent", [QUEUED, QUICK])
def test_many_large_sends_are_bounded_within_one_pause(owner: Person, agent: str) -> None:
    stored_bytes.count()
    accepted = 0
    for _ in range(44):
        with suppress(QuotaReached):
            send(owner, TEXT, agent=agent, return_immediately=True)
            accepted += 1
    assert 0 < accepted < 11, "no sum was made since"
    assert MOST <= size_of_tasks(owner) < MOST + 4 * len(TEXT)
    assert Task.objects.count() == IdempotencyKey.objects.count() == accepted, "what is refused leaves nothing"


@pytest.mark.usefixtures("service")
def test_a_batch_that_names_a_large_task_again_and_again_is_bounded(owner: Person, settings: LazySettings) -> None:
    task = sent(owner, TEXT, agent=QUICK)
    batch = execute(owner, *[BatchInput(task_id=task.id)] * 60, max_concurrent=2)
    (turn,) = take_turns(1, ())

    def waits() -> bool:
        step = async_to_sync(advance)(turn)
        return step is not None and step.pause >= WAIT

    until(waits, "an item is refused")
    assert MOST <= size_of_tasks(owner) < MOST + 10 * len(TEXT)
    assert Batch.objects.get().due_at is not None, "the other items wait for room"
    settings.A2A_OWNER_STORED_BYTES = 0
    assert len(results(ended(owner, batch.id))) == 60


def test_direct_replies_are_bounded_too(owner: Person) -> None:
    stored_bytes.count()
    for _ in range(5):
        assert send(owner, TEXT, agent="replies").message
    refused(lambda: [send(owner, TEXT, agent="replies") for _ in range(5)])
    stored_bytes.count()
    refused(lambda: send(owner, agent="replies"))
    purge("replies")
    stored_bytes.count()
    send(owner, agent="replies")


def test_shared_streams_that_are_begun_and_closed_are_bounded(owner: Person) -> None:
    def begin() -> None:
        stream = ask(owner, StartSharedStream(metadata={"text": "x" * 60_000}))
        ask(owner, EndSharedStream(stream_id=stream.id))

    stored_bytes.count()
    begin()
    begin()
    refused(begin)
    stored_bytes.count()
    refused(begin)
    assert SharedStream.objects.count() == 2


def test_calls_that_are_refused_do_not_fill_the_database(owner: Person) -> None:
    def record() -> ExchangeBody:
        exchange = OpenExchange(door="http", request_id="", rpc_id=UNSET, request=orjson.dumps({"text": TEXT}))
        exchange.set_caller(owner.caller)
        row = Exchange.objects.create(**{name: getattr(exchange.row, name) for name in ("id", "created_at", "door")})
        Exchange.objects.filter(pk=row.pk).update(caller_id=owner.caller.owner_id, request_bytes=len(TEXT))
        return ExchangeBody.objects.create(exchange_id=row.pk, request=exchange.body.request)

    stored_bytes.count()
    sizes = [len(record().request) for _ in range(44)]
    assert max(sizes) > len(TEXT) > LARGE_REQUEST
    assert MOST <= sum(sizes) < MOST + 3 * len(TEXT)
    stored_bytes.count()
    assert quota.stored(owner.caller.owner_id) == sum(sizes), "the bodies count as they are stored"
    refused(lambda: send(owner))
    purge("exchanges")
    stored_bytes.count()
    send(owner)


def test_large_answers_do_not_fill_the_database_at_the_quota(owner: Person, settings: LazySettings) -> None:
    """A message that was accepted before is answered at the quota, as often as it is sent."""

    def record(answer: str) -> str:
        exchange = OpenExchange(door="http", request_id="", rpc_id=UNSET, request=b"{}")
        exchange.set_caller(owner.caller)
        exchange.keep(orjson.dumps({"reply": answer}))
        return exchange.body.response

    stored_bytes.count()
    assert TEXT in record(TEXT)
    settings.A2A_OWNER_STORED_BYTES = 1
    quota.add(owner.caller.owner_id, 1)
    size = len(TEXT) + len('{"reply":""}')
    assert orjson.loads(record(TEXT)) == {
        "omitted": f"the answer, of {size} bytes, because its caller has reached the quota"
    }
    assert record("short") == '{"reply":"short"}', "refusals are recorded"


# ------------------------------------------------------------ what is refused


def new_work() -> dict[str, Request]:
    return {
        "batch": ExecuteBatch(operation=QUEUED, items=(BatchInput(message=message()),)),
        "workflow": ExecuteWorkflow(workflow="w", message=message()),
        "phase": SetPhase(workflow="w", phase=Phase.SPECIFICATION),
        "memory": StoreMemory(namespace="n", key="other", data="x"),
        "shared stream": StartSharedStream(),
    }


@pytest.mark.parametrize("kind", new_work())
def test_all_new_work_is_refused_and_others_are_not_touched(
    owner: Person, colleague: Person, stranger: Person, kind: str
) -> None:
    fill(owner)
    error = refused(lambda: ask(owner, new_work()[kind]))
    assert error.facts["most"] == str(MOST)
    for other in (colleague, stranger):
        ask(other, new_work()[kind])
        send(other)


def test_a_message_is_refused_with_what_was_wrong_and_what_to_do(owner: Person, colleague: Person) -> None:
    fill(owner)
    for agent in (QUEUED, QUICK, "replies"):
        error = refused(lambda agent=agent: send(owner, agent=agent))
        assert isinstance(error, RateLimited)
        assert error.facts["limit"] == "stored bytes"
        assert int(error.facts["stored"]) == quota.stored(owner.caller.owner_id) > MOST == int(error.facts["most"])
        assert f"{int(error.facts['stored']):,} bytes are stored, and 100,000 is the most" in error.full_message
        assert "ask the operator" in error.full_message
    send(colleague)


def test_the_next_message_of_a_task_is_refused_and_a_repeated_one_is_not(owner: Person) -> None:
    first = message("hello")
    task = sent(owner, first, agent=QUEUED, return_immediately=True)
    second = message("more", task_id=task.id)
    assert sent(owner, second, return_immediately=True).id == task.id
    fill(owner)
    refused(lambda: send(owner, message("most", task_id=task.id), return_immediately=True))
    assert sent(owner, second, return_immediately=True).id == task.id
    assert sent(owner, first, agent=QUEUED, return_immediately=True).id == task.id
    with pytest.raises(IdempotencyConflict):
        send(owner, message("other", message_id=first.message_id), agent=QUEUED)


def test_reads_cancels_and_deletes_go_on(owner: Person) -> None:
    ask(owner, StoreMemory(namespace="n", key="k", data="x"))
    task_id = fill(owner)
    refused(lambda: send(owner))
    assert ask(owner, RetrieveMemory(namespace="n", key="k")).data == "x"
    assert ask(owner, GetTask(id=task_id))
    assert ask(owner, CancelTask(id=task_id))
    ask(owner, DeleteMemory(namespace="n", key="k"))


def test_a_shared_stream_takes_nothing_while_its_owner_or_the_author_is_at_the_quota(
    owner: Person, colleague: Person
) -> None:
    def say(who: Person, stream_id: str) -> Any:
        return ask(who, SendToSharedStream(stream_id=stream_id, role=ChunkRole.AGENT, parts=(Part(text="hi"),)))

    first = ask(owner, StartSharedStream(participants=(colleague.caller.name,))).id
    other = ask(colleague, StartSharedStream(participants=(owner.caller.name,))).id
    assert [say(owner, first).seq, say(colleague, first).seq] == [1, 2]
    fill(owner)
    refused(lambda: say(owner, first))
    assert "the owner of the shared stream" in refused(lambda: say(colleague, first)).full_message
    refused(lambda: say(owner, other))
    assert say(colleague, other).seq == 1


# ------------------------------------------------- below the quota once more


def test_an_owner_goes_on_when_tasks_are_purged(owner: Person) -> None:
    task_id = fill(owner)
    refused(lambda: send(owner))
    Task.objects.filter(pk=task_id).update(state="completed")
    purge("tasks")
    refused(lambda: send(owner))
    stored_bytes.count()
    send(owner)


def test_an_owner_goes_on_when_memory_is_deleted(owner: Person) -> None:
    for key in "abcde":
        ask(owner, StoreMemory(namespace="n", key=key, data="x" * 25_000))
        if key == "d":
            break
    refused(lambda: ask(owner, StoreMemory(namespace="n", key="e", data="x")))
    stored_bytes.count()
    refused(lambda: send(owner))
    ask(owner, DeleteMemory(namespace="n", key="a"))
    stored_bytes.count()
    send(owner)


def test_without_a_quota_nothing_is_counted(owner: Person, settings: LazySettings) -> None:
    settings.A2A_OWNER_STORED_BYTES = 0
    sent(owner, "x" * MOST, agent=QUICK)
    send(owner)
    assert not quota.since
    stored_bytes.run_round()
    assert quota.counted is None


# ------------------------------------------------------- sums and processes


def test_each_process_learns_from_sums_what_the_other_stores(owner: Person, colleague: Person) -> None:
    owner_id, other = owner.caller.owner_id, Quota()
    other.is_summed = True
    elsewhere = StoredBytes(other)
    elsewhere.count()
    stored_bytes.count()
    sent(owner, "x" * MOST, agent=QUICK)
    assert quota.is_reached(owner_id), "this process knows what it has stored itself"
    assert not other.is_reached(owner_id)
    other.add(owner_id, 1)  # It stores a little, so that it sums again.
    elsewhere.count()
    assert other.stored(owner_id) == size_of_tasks(owner), "each byte counts once"
    assert other.is_reached(owner_id)
    purge("tasks")
    elsewhere.count()
    assert not other.is_reached(owner_id), "an owner at the quota is summed for, though nothing was stored"


def test_bytes_stored_while_a_sum_is_made_are_not_forgotten() -> None:
    own = Quota()
    own.is_summed = True
    own.add(1, 10)
    baseline = own.begin_sum()
    own.add(1, 5)
    own.add(2, 7)
    own.end_sum(baseline, {1: 10})
    assert (own.stored(1), own.stored(2), own.stored(3)) == (15, 7, 0)
    assert own.begin_sum().owners == {1, 2}


def test_a_process_that_does_not_sum_adds_nothing() -> None:
    own = Quota()
    own.add(1, 10)
    assert not own.since
    routine = StoredBytes(own)
    routine.start()
    routine.stop()
    own.add(1, 10)
    assert own.stored(1) == 10


def test_the_sums_name_the_kinds_of_rows(owner: Person, colleague: Person, settings: LazySettings) -> None:
    settings.A2A_INLINE_BYTES, size = 1_000, 2_000
    sent(owner, agent=QUICK)
    send(colleague, agent="replies")
    sent(owner, message(parts=(Part(raw=b"x" * size, media_type="text/plain"),)), agent=QUICK)
    ask(owner, StoreMemory(namespace="n", key="k", data="é"))
    execute(owner, "a message")
    ask(owner, ExecuteWorkflow(workflow="w", message=message("to do"), configuration={"a": 1}, agent_types=("coder",)))
    ask(owner, StartSharedStream(metadata={"a": 1}))
    ask(owner, StartSharedStream())
    flow, texts = Workflow.objects.get(), BatchItem.objects.values_list("message", flat=True)
    phase = {"workflow": flow, "phase": flow.phase, "agent": QUEUED, "created_at": clock.now()}
    for number, artifacts in enumerate(("[]", None)):
        PhaseTask.objects.create(task_id=f"t{number}", artifacts=artifacts, **phase)
    sums = sum_stored()
    own = sums[owner.caller.owner_id]
    assert own["batches"] == sum(map(len, texts)) > 0
    assert own["workflows"] == len(flow.message) + len(flow.configuration) + len('["coder"]') + len("[]")
    assert own["shared_streams"] == len('{"a":1}')
    assert (own["tasks"], own["files"], own["memory"]) == (size_of_tasks(owner), size, len('"é"'.encode()))
    assert set(sums[colleague.caller.owner_id]) == {"replies"}
    assert sum_stored([owner.caller.owner_id]) == {owner.caller.owner_id: own}
    assert sum_stored([]) == {}


def test_a_long_sum_is_no_delay_and_holds_up_no_end() -> None:
    gate, began = threading.Event(), threading.Event()

    def long_sum() -> None:
        began.set()
        gate.wait(PATIENCE)

    bridge.put(DoInTurn(long_sum))
    assert began.wait(PATIENCE)
    (thread,) = bridge.lanes["sums"].threads
    try:
        assert bridge.lags(-1) == []
        bridge.stop(PATIENCE)
        assert thread.is_alive()
    finally:
        gate.set()
        thread.join(PATIENCE)


def test_a_rest_follows_each_sum_and_grows_with_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rounds = 100.0, 0

    class Slow(StoredBytes):
        def count(self) -> None:
            nonlocal now, rounds
            now, rounds = now + 2, rounds + 1

    monkeypatch.setattr("tasks_app.upkeep.quotas.time.monotonic", lambda: now)
    routine = Slow(Quota())
    for seconds in (0, 2 * REST - 1, 1):
        now += seconds
        routine.run_round()
    assert rounds == 2
