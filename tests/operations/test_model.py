"""The promises as a small model: whatever order callers, workers, crashes and sweeps come in, the service keeps to it.

- A message that was accepted is in one task, once; the same message again is the same task.
- Nobody sees or changes a task of another owner, by any operation, and a message id belongs to its owner.
- A task is claimed only while it waits and its pause is over, by one worker. Hints that are doubled, or come for
  nothing, change nothing; a worker whose claim was answered into the void finds its tasks again.
- A run writes only while it is the task's newest attempt and the task works; the same write again is not a second one.
- A run does not end with an answer while a message waits that its agent has not heard.
- A task that has ended never changes.
- An attempt counts as a try unless the agent was not called; a lost attempt is followed by another, or by the end.
- A sweep takes up lapsed leases alone, and not one that was renewed after the sweep looked.
- A webhook hears of each event after its registration, and of the end in any case: once, in order.

A failure shrinks to the shortest story that shows it.
"""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings as limits
from hypothesis import strategies as st
from hypothesis.stateful import (
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from a2a.failures import Retry
from a2a.requests import (
    GetTask,
    ListTasks,
)
from a2a.states import TaskState
from tasks_app import clock, models
from tasks_app.database.bridge import bridge
from tasks_app.event_log import NEWER_MESSAGE, Appended, Renew, claim, recover, renew
from tasks_app.hints import DueRows, Reached, hints
from tasks_app.runner.retries import Attempt, Verdict, judge_error, judge_interruption, judge_release
from tasks_app.upkeep import leases
from tests.conftest import Person, replayed
from tests.operations.asking import ask, message, page, shown
from tests.operations.callers import Callers
from tests.operations.model import MOST, Run, Task
from tests.operations.rows import LONG_AGO, addition, chunk, status, wish
from tests.support.receiver import Receiver

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.storage,
    pytest.mark.usefixtures("lanes", "loopback"),
]
WORKERS = st.sampled_from(["w1", "w2"])
ENDS = st.sampled_from([TaskState.COMPLETED, TaskState.COMPLETED, TaskState.INPUT_REQUIRED, TaskState.FAILED])
TABLES = (
    models.DeliveryTry,
    models.Delivery,
    models.Webhook,
    models.Event,
    models.Run,
    models.IdempotencyKey,
    models.Exchange,
    models.Task,
)


OPENINGS = {
    "it waits": (),
    "it works": ("claim",),
    "it works and hears more": ("claim", "speak"),
    "its agent answers less than was said": ("claim", "speak", "answer"),
    "it is released": ("claim", "release"),
    "its first run goes on while the second works": ("claim", "release", "claim", "late"),
    "a slow sweep sees it before its worker wakes": ("claim", "lose", "wake", "judge"),
}
"""Events of the first task before a story begins, so that the orders that matter are near."""


class Story(Callers):
    """Workers claim, write, end and die, and sweeps come, while callers do what they do."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []
        self.sights: list[tuple[models.Task, int, Any]] = []
        """Rows that a slow sweep has read and not judged: the row, its fence, and the time."""
        self.hinted = 0
        """How many events there were when hints came for nothing."""

    @initialize(opening=st.sampled_from(sorted(OPENINGS)), hooked=st.booleans())
    def open(self, opening: str, *, hooked: bool) -> None:
        self.begin(self.people[0], message("hello"), hooked=hooked)
        steps: dict[str, Callable[[], None]] = {
            "claim": lambda: self.claim("w1", 1, known=True),
            "speak": lambda: self.speak(self.tasks[0]),
            "answer": lambda: self.finish(self.runs[0], TaskState.COMPLETED),
            "release": lambda: self.give_up(self.runs[0], "released"),
            "late": lambda: self.fail_to_write(self.runs[0], TaskState.COMPLETED),
            "lose": lambda: self.lose(self.tasks[0], looks=True),
            "wake": self.wake,
            "judge": self.judge_what_was_seen,
        }
        for step in OPENINGS[opening]:
            steps[step]()

    def live(self) -> list[Run]:
        """Return the runs whose workers know that they have them, and rightly."""
        return [run for run in self.runs if run.known and run.holds]

    def late(self) -> list[Run]:
        return [run for run in self.runs if run.known and not run.holds]

    def unanswered(self) -> list[Run]:
        return [run for run in self.runs if not run.known and run.holds]

    # ------------------------------------------------------------- workers

    def claim(self, worker: str, limit: int, *, known: bool) -> None:
        waiting = {task.id: task for task in self.tasks if task.waits}
        found = claim(wish(limit, worker, ("tireless",)))
        assert len(found) == min(limit, len(waiting)) == len({read.document.id for read in found})
        for read in found:
            assert read.document.id in waiting, "what is claimed was waiting"
            task = waiting[read.document.id]
            task.claimed()
            assert (read.fence, read.attempt) == (task.fence, task.attempt)
            assert task.attempt <= MOST
            self.runs.append(Run(task, worker, read.fence, read, read.document.seq, read.run_seq, known))

    @precondition(lambda self: self.among(waits=True))
    @rule(worker=WORKERS, limit=st.integers(1, 2), known=st.sampled_from([True, True, True, False]))
    def work(self, worker: str, limit: int, *, known: bool) -> None:
        """A worker claims; sometimes the answer is lost on the way."""
        self.claim(worker, limit, known=known)

    @precondition(lambda self: self.hinted < sum(task.last for task in self.tasks))
    @rule(worker=WORKERS)
    def hints_come_again(self, worker: str) -> None:
        """Twice, late, and for nothing: hints change no row, and a claim finds no more than there is."""
        self.hinted = sum(task.last for task in self.tasks)
        for task in self.tasks:
            hints.notify([Reached(task.id, task.last, task.state.value)] * 2)
        hints.offer()
        hints.due(DueRows.DELIVERIES)
        if not self.among(waits=True):
            assert claim(wish(2, worker, ("tireless",))) == []
        if not self.among(lapsed=True):
            assert leases.reclaim_tasks() == 0, "a sweep may come at any moment"

    @precondition(lambda self: self.unanswered())
    @rule(worker=WORKERS)
    def ask_for_lost_claims(self, worker: str) -> None:
        lost = [run for run in self.unanswered() if run.worker == worker]
        besides = {run.pair for run in self.runs if run.known and run.worker == worker}
        found = {(read.document.id, read.fence) for read in recover(worker, besides)}
        assert found == {run.pair for run in lost}
        for run in lost:
            run.known = True

    def put(self, run: Run, *events: Any, **more: Any) -> Any:
        return bridge.do(addition(run.task.id, *events, fence=run.fence, **more))

    @precondition(lambda self: self.live())
    @rule(data=st.data(), twice=st.booleans(), hears=st.booleans())
    def write(self, data: Any, *, twice: bool, hears: bool) -> None:
        """A write whose answer was lost is asked for again, and is not made twice."""
        run = data.draw(st.sampled_from(self.live()))
        result = self.put(run, chunk("word"), after=run.last)
        assert isinstance(result, Appended)
        run.task.happens()
        if twice:
            assert not isinstance(self.put(run, chunk("word"), after=run.last), Appended)
        run.last = result.seq
        if hears:
            run.heard = run.task.newest

    @precondition(lambda self: self.live())
    @rule(data=st.data(), state=ENDS)
    def end(self, data: Any, state: TaskState) -> None:
        """An end that answers holds only if the newest message was heard; else the task goes on."""
        self.finish(data.draw(st.sampled_from(self.live())), state)

    def finish(self, run: Run, state: TaskState) -> None:
        task = run.task
        heard = None if state is TaskState.FAILED else run.heard
        result = self.put(run, status(state), newest_message=heard, after=run.last)
        if heard is None or task.newest <= heard:
            assert isinstance(result, Appended)
            task.happens(state)
            return
        assert result is NEWER_MESSAGE, "a message waits that the agent has not heard"
        assert isinstance(self.put(run, status(TaskState.SUBMITTED), attempts=-run.read.attempt), Appended)
        task.happens(TaskState.SUBMITTED)
        task.attempt = 0

    @precondition(lambda self: self.late())
    @rule(data=st.data(), state=ENDS)
    def come_too_late(self, data: Any, state: TaskState) -> None:
        """A run that is over writes nothing, and renews nothing."""
        self.fail_to_write(data.draw(st.sampled_from(self.late())), state)

    def fail_to_write(self, run: Run, state: TaskState) -> None:
        assert not isinstance(self.put(run, chunk("late")), Appended)
        assert not isinstance(self.put(run, status(state)), Appended)
        assert renew(Renew(worker=run.worker, pairs=(run.pair,))) == set()

    @precondition(lambda self: self.live())
    @rule(data=st.data(), how=st.sampled_from(["released", "interrupted", "retry"]))
    def stop(self, data: Any, how: str) -> None:
        """The process is told to end, before or while the agent is at work; or the agent asks for another attempt."""
        self.give_up(data.draw(st.sampled_from(self.live())), how)

    def give_up(self, run: Run, how: str) -> None:
        task = run.task
        attempt = Attempt(task.id, run.read.document.context_id, "tireless", run.read.attempt, run.read.max_attempts)
        verdict: Verdict
        if how == "released":
            verdict = judge_release(attempt, "The server stops.")
        elif how == "interrupted":
            verdict = judge_interruption(attempt)
        else:
            verdict = judge_error(attempt, Retry("Busy."), "Busy.", transient=True)
        assert isinstance(self.put(run, verdict.event, delay=verdict.delay, attempts=verdict.attempts), Appended)
        if how == "released":
            task.happens(TaskState.SUBMITTED)
            task.attempt -= 1
        else:
            task.goes_on(pauses=how == "retry")

    @precondition(lambda self: self.among(pauses=True))
    @rule()
    def the_pause_ends(self) -> None:
        for task in self.among(pauses=True):
            models.Task.objects.filter(pk=task.id).update(not_before=LONG_AGO)
            task.pauses = False

    # -------------------------------------------------------------- sweeps

    @precondition(lambda self: any(run.holds for run in self.runs))
    @rule(data=st.data(), looks=st.booleans())
    def lapse(self, data: Any, *, looks: bool) -> None:
        """A worker dies or freezes, and its lease ends; a slow sweep may see it."""
        self.lose(data.draw(st.sampled_from([run for run in self.runs if run.holds])).task, looks=looks)

    def lose(self, task: Task, *, looks: bool) -> None:
        models.Task.objects.filter(pk=task.id).update(lease_until=LONG_AGO)
        task.lapsed = True
        if looks:
            now = clock.now()
            self.sights += [(row, row.fence, now) for row in leases._find_overdue(now)]

    @precondition(lambda self: any(run.task.lapsed for run in self.live()))
    @rule()
    def wake(self) -> None:
        """A worker that was frozen renews what it has."""
        for run in self.live():
            assert renew(Renew(worker=run.worker, pairs=(run.pair,))) == {run.task.id}
            run.task.lapsed = False

    @precondition(lambda self: self.sights)
    @rule()
    def judge_what_was_seen(self) -> None:
        """A slow sweep writes what it has judged by a look of long ago."""
        sights, self.sights = self.sights, []
        for row, fence, now in sights:
            task = next(task for task in self.tasks if task.id == row.id)
            holds = task.lapsed and task.fence == fence
            assert leases._reclaim(row, now) is holds, "lapsed leases alone are taken up"
            if holds:
                task.goes_on(pauses=True)

    @precondition(lambda self: self.among(lapsed=True))
    @rule()
    def sweep(self) -> None:
        lapsed = self.among(lapsed=True)
        assert (leases.reclaim_tasks(), leases.reclaim_tasks()) == (len(lapsed), 0)
        for task in lapsed:
            task.goes_on(pauses=True)

    # ------------------------------------------------------------ promises

    @invariant()
    def the_rows_are_as_they_must_be(self) -> None:
        rows = models.Task.objects.values_list("id", "state", "fence", "attempt", "last_seq")
        assert {id: tuple(rest) for id, *rest in rows} == {task.id: task.row for task in self.tasks}

    @invariant()
    def each_event_has_its_deliveries(self) -> None:
        rows: dict[str, list[int]] = {webhook.path[1:]: [] for _, webhook in self.hooked()}
        found = models.Delivery.objects.filter(webhook__name__in=rows).order_by("seq")
        for name, seq in found.values_list("webhook__name", "seq"):
            rows[name].append(seq)
        assert rows == {webhook.path[1:]: webhook.due for _, webhook in self.hooked()}

    def check_the_end(self) -> None:
        """Check that callers are told what happened."""
        for row in models.Task.objects.all():
            replayed(row)
        for person in self.people:
            mine = [task for task in self.tasks if task.person is person]
            assert sorted(page(ask(person, ListTasks()))) == sorted(task.id for task in mine)
            for task in mine:
                history = shown(ask(person, GetTask(id=task.id))).history
                said = [one.message_id for one in history if one.role == "user"]
                assert said == task.messages, "each accepted message is in one task, once"
        if self.hooked():
            self.deliver(away=False)

    def teardown(self) -> None:
        try:
            self.check_the_end()
        finally:
            for model in TABLES:
                model.objects.all().delete()


def test_whatever_happens_in_whatever_order_the_promises_hold(
    owner: Person, colleague: Person, stranger: Person, there: Receiver, settings: Any
) -> None:
    settings.A2A_LEASE_SECONDS = 3600.0
    settings.A2A_OWNER_WEBHOOKS = 100_000
    Story.people, Story.there = (owner, colleague, stranger), there
    run_state_machine_as_test(Story, settings=limits(max_examples=40, stateful_step_count=25))
