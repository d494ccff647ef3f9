"""The promises as a small model: whatever order callers, workers, crashes and sweeps come in, the service keeps to it.

A failure shrinks to the shortest story that shows it.
"""

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from a2a.errors import IdempotencyConflict, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a.requests import CancelTask, GetTask, SendMessage
from a2a.states import TERMINAL, TaskState
from a2a.types import Message
from tasks_app.event_log import UNHEARD, Appended, TaskRead, append_many, claim
from tasks_app.leases import take_up
from tasks_app.models import Event, Exchange, IdempotencyKey, Run, Task
from tests.conftest import Person, replayed
from tests.operations.asking import ask, message, shown
from tests.operations.rows import addition, chunk, expire, status, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]
MOST = 2
"""Attempts of the agent that is used."""


@dataclass
class Model:
    """A task as it must be."""

    id: str
    state: str = "submitted"
    attempt: int = 0
    tries: int = 0
    messages: list[str] = field(default_factory=list)
    newest: int = 0
    """The event of the newest message."""

    @property
    def ended(self) -> bool:
        return self.state in TERMINAL


class Story(RuleBasedStateMachine):
    """Callers send, repeat, follow up and cancel; workers claim, write, end and die."""

    owner: Person
    stranger: Person
    sends: Bundle[Any] = Bundle("sends")
    runs: Bundle[TaskRead] = Bundle("runs")

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, Model] = {}

    # ------------------------------------------------------------- callers

    def _send(self, said: Message) -> Any:
        return shown(ask(self.owner, SendMessage(message=said, return_immediately=True), agent="tries-twice"))

    @rule(target=sends)
    def send(self) -> Message:
        said = message("hello")
        made = self._send(said)
        assert made.id not in self.tasks
        self.tasks[made.id] = Model(made.id, messages=[said.message_id])
        return said

    @rule(said=sends)
    def repeat(self, said: Message) -> None:
        """The same message is the same task; another text under its id is a conflict."""
        (known,) = [task for task in self.tasks.values() if said.message_id in task.messages]
        assert self._send(said).id == known.id
        with pytest.raises(IdempotencyConflict):
            self._send(message("another text", message_id=said.message_id, task_id=said.task_id))

    @rule(target=sends, data=st.data())
    def follow_up(self, data: Any) -> Message:
        said = message("more")
        if self.tasks:
            task = self.tasks[data.draw(st.sampled_from(sorted(self.tasks)))]
            said = message("more", task_id=task.id)
            if task.ended:
                with pytest.raises(UnsupportedOperation):
                    self._send(said)
                said = message("new")
            else:
                assert self._send(said).id == task.id
                if task.state == "input_required":
                    task.state, task.tries = "submitted", 0
                task.messages.append(said.message_id)
                task.newest = Task.objects.get(pk=task.id).last_seq
                return said
        made = self._send(said)
        self.tasks[made.id] = Model(made.id, messages=[said.message_id])
        return said

    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        for task_id in data.draw(st.lists(st.sampled_from(sorted(self.tasks)), max_size=1)) if self.tasks else ():
            if self.tasks[task_id].ended:
                with pytest.raises(TaskNotCancelable):
                    ask(self.owner, CancelTask(id=task_id))
            else:
                ask(self.owner, CancelTask(id=task_id))
                self.tasks[task_id].state = "canceled"

    @rule()
    def a_stranger_looks(self) -> None:
        for task_id in list(self.tasks)[:1]:
            with pytest.raises(TaskNotFound):
                ask(self.stranger, GetTask(id=task_id))

    # ------------------------------------------------------------- workers

    @rule(target=runs)
    def work(self) -> TaskRead | None:
        """A hint comes, once or for nothing: what is claimed was waiting, and is one worker's."""
        waiting = {task.id for task in self.tasks.values() if task.state == "submitted"}
        found = claim(wish(1))
        assert len(found) == min(1, len(waiting))
        for read in found:
            task = self.tasks[read.document.id]
            assert task.id in waiting
            task.state, task.attempt, task.tries = "working", task.attempt + 1, task.tries + 1
            assert (read.attempt, read.tries) == (task.attempt, task.tries)
            assert task.tries <= MOST
            return read
        return None

    def _holds(self, run: TaskRead) -> bool:
        task = self.tasks[run.document.id]
        return task.state == "working" and task.attempt == run.attempt

    @rule(run=runs)
    def write(self, run: TaskRead | None) -> None:
        if run is not None:
            (result,) = append_many([addition(run.document.id, chunk("word"), attempt=run.attempt)])
            assert isinstance(result, Appended) is self._holds(run)

    @rule(run=consumes(runs), looks=st.booleans(), state=st.sampled_from(["completed", "input_required", "failed"]))
    def end(self, run: TaskRead | None, looks: bool, state: str) -> None:
        """An end that answers holds only if the newest message was heard."""
        if run is None:
            return
        task, holds = self.tasks[run.document.id], self._holds(run)
        heard = task.newest if looks else run.document.seq
        condition = None if state == "failed" else heard
        (result,) = append_many([addition(task.id, status(TaskState(state)), attempt=run.attempt, heard=condition)])
        if not holds:
            assert not isinstance(result, Appended)
        elif condition is not None and task.newest > heard:
            assert result is UNHEARD
            again = addition(task.id, status(TaskState.SUBMITTED), attempt=run.attempt, tries=-run.tries)
            assert isinstance(append_many([again])[0], Appended)
            task.state, task.tries = "submitted", 0
        else:
            assert isinstance(result, Appended)
            task.state = state

    @rule(run=runs)
    def die(self, run: TaskRead | None) -> None:
        """The process is killed, its lease ends, and two sweeps come."""
        if run is None or not self._holds(run):
            return
        task = self.tasks[run.document.id]
        expire(run)
        assert (take_up(), take_up()) == (1, 0)
        task.state = "submitted" if task.tries < MOST else "failed"
        Task.objects.filter(pk=task.id).update(not_before=None)  # the pause is over

    @rule()
    def sweep(self) -> None:
        assert take_up() == 0, "nobody has died"

    # ------------------------------------------------------------ promises

    @invariant()
    def the_rows_are_as_they_must_be(self) -> None:
        rows = {row.id: (row.state, row.attempt, row.tries) for row in Task.objects.all()}
        assert rows == {task.id: (task.state, task.attempt, task.tries) for task in self.tasks.values()}

    def teardown(self) -> None:
        for row in Task.objects.all():
            replayed(row)
            task = folded = shown(ask(self.owner, GetTask(id=row.id)))
            said = [one.message_id for one in folded.history if one.role == "user"]
            assert said == self.tasks[task.id].messages, "each accepted message is in one task, once"
        for model in (Event, Run, IdempotencyKey, Exchange, Task):
            model.objects.all().delete()


def test_whatever_happens_in_whatever_order_the_promises_hold(owner: Person, stranger: Person) -> None:
    Story.owner, Story.stranger = owner, stranger
    run_state_machine_as_test(Story, settings=settings(max_examples=25, stateful_step_count=25, deadline=None))
