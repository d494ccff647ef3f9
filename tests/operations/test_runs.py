"""The fate of queued tasks: agents of every form, every ending and every mistake, run by the service."""

import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, cast
from unittest.mock import Mock

import pytest
from asgiref.sync import async_to_sync

from a2a.agents import agent
from a2a.answers import Answer
from a2a.errors import Unavailable
from a2a.requests import CancelTask, GetTask, SendMessage
from a2a.run import Run as Given
from tasks_app import clock
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.event_log import conversation
from tasks_app.event_log.readers import readers
from tasks_app.hints import Reached, hints
from tasks_app.models import Event, Exchange, Run, Task
from tasks_app.operations import Context, perform, wait_on
from tasks_app.operations.operation import Wait
from tasks_app.runner import quick
from tasks_app.runner.runner import Runner, runner
from tasks_app.upkeep.leases import reclaim_tasks
from tasks_app.upkeep.sweeps import sweeper
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import ask, data, message, send, sent, shown, text_of, words
from tests.operations.rows import LONG_AGO, together
from tests.support.agents import MEMORY, SECRET

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


@pytest.mark.parametrize("when", ["before the sweep", "in the middle of it"])
def test_a_clock_that_is_set_forward_or_a_machine_that_has_slept_costs_no_run(
    owner: Person, monkeypatch: pytest.MonkeyPatch, settings: Any, when: str
) -> None:
    settings.A2A_LEASE_SECONDS = 30
    made = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: Task.objects.get().state == "working", "it is worked on")
    sweeper.stop()
    later, renew = clock.now() + timedelta(seconds=60), sweeper.renew

    def leap() -> None:
        monkeypatch.setattr(clock, "now", lambda: later)

    def renewed_then_leaps() -> None:
        renew()
        leap()

    if when == "before the sweep":
        leap()
    else:
        monkeypatch.setattr(sweeper, "renew", renewed_then_leaps)
    sweeper.run_round()
    sweeper.stop()
    row = Task.objects.get()
    assert (row.state, row.fence) == ("working", 1)
    monkeypatch.undo()
    assert ask(owner, CancelTask(id=made.id))


def reference_in(text: str) -> str:
    sentence, _, reference = text.partition("Reference: ")
    assert sentence == "The agent failed. "
    assert len(reference) == 12
    return reference


@pytest.mark.parametrize("form", ["async-generator", "coroutine", "generator", "function"])
def test_an_agent_of_any_form_completes(owner: Person, form: str) -> None:
    task = sent(owner, "hello", f"form-{form}")
    assert (task.status.state, text_of(task)) == ("completed", "hello")
    run = Run.objects.get()
    assert (run.fence, run.outcome, run.reference, run.traceback) == (1, "completed", "", "")
    row = Task.objects.get()
    assert (row.fence, row.attempt, row.lease_owner, row.lease_until, row.deadline) == (1, 1, None, None, None)


def test_the_log_says_who_did_what(owner: Person) -> None:
    sent(owner, "hello", "form-coroutine")
    log = Event.objects.order_by("seq").values_list("kind", "state", "actor", "fence")
    assert list(log) == [
        ("task", "submitted", "caller", 0),
        ("statusUpdate", "working", "runner", 1),
        ("artifactUpdate", None, "agent", 1),
        ("statusUpdate", "completed", "agent", 1),
    ]


@pytest.mark.parametrize(
    ("agent", "state", "said"),
    [
        ("replies-late", "completed", "You said hello"),
        ("rejects", "rejected", "That is not my job."),
        ("asks", "input_required", "Which one?"),
        ("asks-credentials", "auth_required", "Please sign in."),
    ],
)
def test_an_agent_ends_its_run_in_its_own_words(owner: Person, agent: str, state: str, said: str) -> None:
    task = sent(owner, "hello", agent)
    assert task.status.state == state
    assert task.status.message
    assert task.status.message.text == said
    assert Run.objects.get().outcome == state


def test_a_question_and_its_answer_are_one_task(owner: Person) -> None:
    task = sent(owner, "red", "asks")
    again = sent(owner, message("blue", task_id=task.id))
    assert (again.id, again.status.state, text_of(again)) == (task.id, "completed", "red and blue")
    assert [said.text for said in again.history] == ["red", "Which one?", "blue"]
    assert list(Run.objects.order_by("id").values_list("fence", "outcome")) == [
        (1, "input_required"),
        (2, "completed"),
    ]


def test_an_interview_remembers_what_was_said(owner: Person) -> None:
    task = sent(owner, "hello", "interview")
    sent(owner, message("Ada", task_id=task.id))
    assert text_of(sent(owner, message("a loom", task_id=task.id))) == "Ada wishes: a loom"


def test_credentials_that_came_let_the_agent_go_on(owner: Person) -> None:
    task = sent(owner, "hello", "asks-credentials")
    assert text_of(sent(owner, message("done", task_id=task.id))) == "signed in"


def test_a_run_hears_messages_while_it_works(owner: Person) -> None:
    task = sent(owner, "hello", "gate", return_immediately=True)
    until(lambda: Task.objects.get().state == "working", "the run begins")
    for word in ("one", "two"):
        sent(owner, message(word, task_id=task.id), return_immediately=True)
    done = sent(owner, message("stop", task_id=task.id))
    assert (done.status.state, text_of(done)) == ("completed", "begin one two end")
    assert Run.objects.count() == 1


def test_a_run_knows_its_owners_conversation_only(owner: Person, stranger: Person) -> None:
    send(stranger, message("not mine", context_id="c"), "echo")
    send(owner, message("one", context_id="c"), "echo")
    send(owner, message("two", context_id="c"), "replies")
    assert text_of(sent(owner, message("three", context_id="c"), "conversation")) == "one | one | two | You said two"


def test_a_run_knows_as_much_of_a_conversation_as_can_be_read_quickly(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    for text, name in (("one", "echo"), ("x" * 3_000, "echo"), ("two", "replies"), ("three", "echo")):
        send(owner, message(text, context_id="c"), name)
    monkeypatch.setattr(conversation, "MOST", 3_000)
    assert text_of(sent(owner, message("four", context_id="c"), "conversation")) == "two | You said two | three | three"


def test_inputs_reach_the_agent(owner: Person) -> None:
    assert text_of(sent(owner, data({"city": "Rome"}), "inputs")) == "1 days of rain in Rome"


def test_a_quick_stream_of_chunks_is_written_in_few_events_and_completely(owner: Person) -> None:
    task = sent(owner, "hello", "chatty")
    assert text_of(task) == "".join(f"{number} " for number in range(200))
    assert Event.objects.count() < 50


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize("agent", ["raises", "raises-in-a-thread"])
def test_a_failure_gives_the_caller_a_reference_and_the_operator_the_traceback(
    owner: Person, agent: str, caplog: pytest.LogCaptureFixture
) -> None:
    task = sent(owner, "hello", agent)
    assert task.status.state == "failed"
    assert task.status.message
    reference = reference_in(task.status.message.text)
    run = Run.objects.get()
    assert (run.outcome, run.reference) == ("failed", reference)
    assert "Traceback" in run.traceback
    assert reference in caplog.text
    wire = words(shown(ask(owner, GetTask(id=task.id))))
    assert "Traceback" not in wire
    assert "Error" not in wire
    assert SECRET in run.traceback
    assert SECRET not in wire
    assert text_of(task) == "so far so good"
    for payload in Event.objects.values_list("payload", flat=True):
        assert SECRET not in payload


def test_a_quick_agent_that_fails_gives_a_reference_only(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    task = sent(owner, "hello", "quick-raises")
    assert task.status.state == "failed"
    assert task.status.message
    assert reference_in(task.status.message.text) in caplog.text
    assert "Traceback" in caplog.text
    assert "Traceback" not in words(task)
    assert SECRET not in words(task)
    assert not Exchange.objects.filter(body__response__contains=SECRET).exists()


def test_the_traceback_of_a_quick_agent_is_kept_for_the_operator(owner: Person) -> None:
    task = sent(owner, "hello", "quick-raises")
    assert task.status.message
    run = Run.objects.get()
    assert (run.outcome, run.reference) == ("failed", reference_in(task.status.message.text))
    assert "Traceback" in run.traceback


def test_an_agent_that_sleeps_past_its_timeout_is_stopped(owner: Person) -> None:
    task = sent(owner, "hello", "sleeper")
    assert task.status.state == "failed"
    assert task.status.message
    assert task.status.message.text == "The agent took longer than its timeout of 0.3 s."
    assert Run.objects.get().outcome == "failed"


def test_a_quick_agent_that_is_not_quick_is_told_to_say_so(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "LIMIT", 0.2)
    began = time.monotonic()
    task = sent(owner, "hello", "quick-sleeper")
    assert time.monotonic() - began < 30, "it would sleep for a minute"
    assert task.status.state == "failed"
    assert task.status.message
    assert "without quick=True" in task.status.message.text


@agent(quick=True)
def quick_stays(run: Given) -> str:
    """Is quick when it is let go, and cannot be stopped before."""
    assert MEMORY["let go"].wait(PATIENCE)
    return "gone"


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, prompt_threads: None) -> Iterator[quick.Threads]:
    """Give the threads of the agent that stays: two, and they are kept until the end."""
    monkeypatch.setattr(quick, "LIMIT", 0.2)
    monkeypatch.setattr(quick, "SLOTS", 2)
    monkeypatch.setattr(quick, "THREADS", defaultdict(quick.Threads))
    MEMORY["let go"] = threading.Event()
    threads = quick.THREADS["quick-stays"]
    yield threads
    MEMORY["let go"].set()
    threads.shutdown()


def test_a_quick_agent_that_cannot_be_stopped_is_answered_for_in_time(owner: Person, hanging: quick.Threads) -> None:
    task = sent(owner, "hello", "quick-stays")
    assert len(hanging.late) == 1, "it is still at work"
    assert task.status.message
    assert (task.status.state, "without quick=True" in task.status.message.text) == ("failed", True)
    MEMORY["let go"].set()
    until(lambda: not hanging.late, "its thread is free")
    assert shown(ask(owner, GetTask(id=task.id))) == task, "what it says after that is not heard"


def test_a_quick_agent_whose_threads_all_hang_is_refused_and_others_go_on(
    owner: Person, hanging: quick.Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A call beyond the threads waits for one until its time is over, or is refused at once.
    results = together(3, lambda _: sent(owner, "hello", "quick-stays"))
    assert sum(isinstance(result, Unavailable) for result in results) == 1, results
    assert (Task.objects.count(), len(hanging.late)) == (2, 2)
    with pytest.raises(Unavailable):
        send(owner, "hello", "quick-stays")
    monkeypatch.setattr(quick, "LIMIT", PATIENCE)
    assert text_of(sent(owner, "hello", "quick-function")) == "hello"
    MEMORY["let go"].set()
    until(lambda: not hanging.late, "the threads are free")
    assert text_of(sent(owner, "hello", "quick-stays")) == "gone"


def test_a_nul_character_of_an_agent_is_stored_and_shown(owner: Person) -> None:
    task = sent(owner, "hello", "gives-nul")
    assert (task.status.state, text_of(task)) == ("completed", "before\0after")


def test_a_wait_that_begins_just_after_the_end_is_over_at_once(owner: Person, settings: Any) -> None:
    """An end committed between the creation of a task and the wait for it is not left to the poll."""
    settings.A2A_POLL_SECONDS = settings.A2A_WAIT_SECONDS = 60

    async def late() -> Any:
        readers.bind()
        context = Context(caller=owner.caller, agent="form-coroutine")
        made: Any = await perform(SendMessage(message=message(), return_immediately=True), context)
        async with readers.reader(made.task.id, made.task.context_id, 1) as reader:
            await reader.quiet(PATIENCE)
        read = cast(Answer, await perform(GetTask(id=made.task.id), context))
        wait = Wait(task_id=made.task.id, context_id=made.task.context_id, after=1, history_length=None)
        began = time.monotonic()
        assert cast(Answer, await wait_on(wait, context)).task == read.task
        assert time.monotonic() - began < settings.A2A_WAIT_SECONDS / 2

    async_to_sync(late)()


def test_a_hint_that_is_not_true_ends_no_run(owner: Person) -> None:
    task = sent(owner, "hello", "waits", return_immediately=True)
    until(lambda: task.id in runner.running, "it is worked on")
    hints.notify([Reached(task.id, 9, "completed")])
    until(lambda: bridge.do(DoSlowly(lambda: True)), "the lanes answer")
    assert task.id in runner.running
    ask(owner, CancelTask(id=task.id))
    until(lambda: task.id not in runner.running, "the run is over")


# ---------------------------------------------------- the slots of a process


@agent(attempts=2, backoff=0)
def stays_in_a_thread(run: Given) -> str:
    """Cannot be stopped, but ends when it is let go."""
    assert MEMORY["let go"].wait(PATIENCE)
    return "gone"


def taken_up_again(owner: Person, agent: str) -> tuple[Any, Any]:
    """Return a run of this process whose lease has ended, and the one that this process has begun in its place."""
    task = sent(owner, "hello", agent, return_immediately=True)
    until(lambda: task.id in runner.running and runner.running[task.id].run, "it is worked on")
    first = runner.running[task.id]
    Task.objects.update(max_attempts=2)

    def second() -> bool:
        # Again each time, because a heartbeat may renew the lease meanwhile.
        Task.objects.filter(fence=1, state="working").update(lease_until=LONG_AGO)
        reclaim_tasks()
        run = runner.running.get(task.id)
        return run is not first and run is not None and run.task is not None

    until(second, "this process has taken it up again")
    return first, runner.running[task.id]


def test_a_run_whose_task_the_same_process_has_taken_up_again_is_stopped(owner: Person) -> None:
    first, second = taken_up_again(owner, "waits")
    until(first.task.done, "the first run is stopped")
    assert not second.task.done()
    assert list(Task.objects.values_list("fence", "state")) == [(2, "working")]
    ask(owner, CancelTask(id=second.task_id))
    until(second.task.done, "the second run is stopped")
    until(lambda: not runner.predecessors, "nothing is at work")


def test_a_run_that_has_lost_its_task_and_does_not_end_keeps_its_slot(owner: Person, settings: Any) -> None:
    MEMORY["let go"] = threading.Event()
    first, second = taken_up_again(owner, "stays-in-a-thread")
    until(lambda: runner.hanging == {first}, "the first run is over, and its thread is not")
    assert runner._free(is_async=False) == settings.A2A_SYNC_SLOTS - 2
    MEMORY["let go"].set()
    until(lambda: first.task.done() and second.task.done(), "both are over")
    until(lambda: runner._free(is_async=False) == settings.A2A_SYNC_SLOTS, "both slots are free")
    assert list(Task.objects.values_list("fence", "state")) == [(2, "completed")]


def test_a_slot_that_is_freed_while_the_slots_are_counted_is_offered(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.A2A_ASYNC_SLOTS = 1
    full, run, offers = Runner(), Mock(task_id="t", is_async=True, **{"seat.is_busy": False}), []
    full.running["t"] = run
    count = full._free

    def counted(is_async: bool) -> int:
        free = count(is_async)
        full._on_end(run)  # As if the run ended just after this thread has counted.
        return free

    monkeypatch.setattr(full, "_free", counted)
    monkeypatch.setattr(hints, "offer", lambda: offers.append("look again"))
    assert [want.limit for want in full._demands()] == [settings.A2A_SYNC_SLOTS], "none is left for async runs"
    assert "look again" in offers
