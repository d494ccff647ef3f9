"""One half of the machine of test_model.py: what callers do, and what their webhooks hear."""

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    precondition,
    rule,
)

from a2a.agents import agent
from a2a.errors import IdempotencyConflict, TaskNotCancelable, TaskNotFound, UnsupportedOperation
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    Request,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.run import Run as Given
from a2a.states import TaskState
from a2a.types import Message
from tasks_app import models
from tasks_app.database.bridge import bridge
from tasks_app.event_log import Appended
from tests.conftest import Person
from tests.operations.asking import ask, message, shown
from tests.operations.model import MOST, Task, Webhook
from tests.operations.rows import LONG_AGO, addition, status
from tests.operations.webhooks import config, pump
from tests.support.receiver import Receiver, Reply


@agent(attempts=MOST, backoff=3600, timeout=3600)
async def tireless(run: Given) -> str:
    """Is tried again an hour later."""
    return "done"


class Callers(RuleBasedStateMachine):
    """The rules of callers, and of the webhooks that they register."""

    people: tuple[Person, ...]
    there: Receiver

    def __init__(self) -> None:
        super().__init__()
        self.tasks: list[Task] = []
        self.sent: list[tuple[Message, Task]] = []
        self.names = 0
        self.refused: set[Task] = set()
        """Ended tasks that were touched in vain."""
        self.hidden: set[Task] = set()
        """Tasks that others have looked for in vain."""

    # ------------------------------------------------------------- choices

    def among(self, **wanted: bool) -> list[Task]:
        """Return the tasks with these properties."""
        return [task for task in self.tasks if all(getattr(task, name) is value for name, value in wanted.items())]

    def hooked(self) -> list[tuple[Task, Webhook]]:
        return [(task, webhook) for task in self.tasks for webhook in task.webhooks if not webhook.removed]

    # ------------------------------------------------------------- callers

    def ask(self, person: Person, said: Message, **more: Any) -> Any:
        request = SendMessage(message=said, return_immediately=True, **more)
        return shown(ask(person, request, agent="tireless"))

    def begin(self, person: Person, said: Message, *, hooked: bool = False) -> None:
        self.names += 1
        webhooks = [Webhook(f"/{self.names}", [1])] if hooked else []
        push = config(self.there.url + webhooks[0].path, id=webhooks[0].path[1:]) if hooked else None
        made = self.ask(person, said, push_config=push)
        assert made.id not in {task.id for task in self.tasks}, "a new message is a new task"
        task = Task(len(self.tasks) + 1, made.id, person, [said.message_id], webhooks=webhooks)
        self.tasks.append(task)
        self.sent.append((said, task))

    @precondition(lambda self: len(self.tasks) < 4)
    @rule(place=st.integers(0, 1), hooked=st.booleans())
    def send(self, place: int, *, hooked: bool) -> None:
        self.begin(self.people[place], message("hello"), hooked=hooked)

    @rule(data=st.data())
    def repeat(self, data: Any) -> None:
        """Send a message again: it is the same task, and another text under its id is a conflict."""
        said, task = data.draw(st.sampled_from(self.sent))
        assert self.ask(task.person, said).id == task.id
        with pytest.raises(IdempotencyConflict):
            self.ask(task.person, message("another text", message_id=said.message_id, task_id=said.task_id))

    @precondition(lambda self: all(task.person is not self.people[2] for task in self.tasks))
    @rule()
    def another_uses_the_same_id(self) -> None:
        """Ids of messages are their owner's: for the stranger it is a new message."""
        self.begin(self.people[2], self.sent[0][0])

    @precondition(lambda self: self.among(has_ended=False))
    @rule(data=st.data())
    def follow_up(self, data: Any) -> None:
        self.speak(data.draw(st.sampled_from(self.among(has_ended=False))))

    def speak(self, task: Task) -> None:
        said = message("more", task_id=task.id)
        assert self.ask(task.person, said).id == task.id
        task.hears(said.message_id)
        self.sent.append((said, task))

    @precondition(lambda self: len(self.among(has_ended=False)) > 1)
    @rule(data=st.data())
    def cancel(self, data: Any) -> None:
        task = data.draw(st.sampled_from(self.among(has_ended=False)))
        ask(task.person, CancelTask(id=task.id))
        task.happens(TaskState.CANCELED)

    @precondition(lambda self: not self.refused.issuperset(self.among(has_ended=True)))
    @rule(data=st.data())
    def touch_what_has_ended(self, data: Any) -> None:
        """Neither callers nor the server change it, even if they looked before it ended."""
        task = data.draw(st.sampled_from([task for task in self.among(has_ended=True) if task not in self.refused]))
        self.refused.add(task)
        with pytest.raises(TaskNotCancelable):
            ask(task.person, CancelTask(id=task.id))
        with pytest.raises(UnsupportedOperation):
            self.ask(task.person, message("more", task_id=task.id))
        assert not isinstance(bridge.do(addition(task.id, status(TaskState.CANCELED))), Appended)
        assert not isinstance(bridge.do(addition(task.id, status(TaskState.SUBMITTED))), Appended)

    @precondition(lambda self: not self.hidden.issuperset(self.tasks))
    @rule(data=st.data())
    def others_see_nothing(self, data: Any) -> None:
        task = data.draw(st.sampled_from([task for task in self.tasks if task not in self.hidden]))
        self.hidden.add(task)
        push = config(self.there.url)
        requests: list[Request] = [
            GetTask(id=task.id),
            CancelTask(id=task.id),
            SubscribeToTask(id=task.id),
            SendMessage(message=message("mine", task_id=task.id), return_immediately=True),
            StreamMessage(message=message("mine", task_id=task.id)),
            CreatePushConfig(task_id=task.id, config=push),
            GetPushConfig(task_id=task.id, id="1"),
            ListPushConfigs(task_id=task.id, page_size=10),
            DeletePushConfig(task_id=task.id, id="1"),
        ]
        person = data.draw(st.sampled_from([other for other in self.people if other is not task.person]))
        for request in requests:
            with pytest.raises(TaskNotFound):
                ask(person, request)

    # ------------------------------------------------------------ webhooks

    @precondition(lambda self: len(self.hooked()) < 3)
    @rule(data=st.data())
    def register(self, data: Any) -> None:
        """An event before it is not heard of, except the end."""
        task = data.draw(st.sampled_from(self.tasks))
        self.names += 1
        webhook = Webhook(f"/{self.names}", [task.last] if task.has_ended else [])
        ask(
            task.person,
            CreatePushConfig(task_id=task.id, config=config(self.there.url + webhook.path, id=webhook.path[1:])),
        )
        task.webhooks.append(webhook)

    @precondition(lambda self: self.hooked())
    @rule(data=st.data())
    def unregister(self, data: Any) -> None:
        task, webhook = data.draw(st.sampled_from(self.hooked()))
        ask(task.person, DeletePushConfig(task_id=task.id, id=webhook.path[1:]))
        webhook.removed = True

    @precondition(lambda self: any(webhook.due != webhook.arrived for _, webhook in self.hooked()))
    @rule(away=st.booleans())
    def deliver(self, *, away: bool) -> None:
        """To a receiver that is there, or to one that refuses: then the next time."""
        self.there.got.clear()
        self.there.default = Reply(503) if away else Reply()
        models.Webhook.objects.filter(due_at__isnull=False).update(due_at=LONG_AGO)  # the gap is over
        pump()
        for task in self.tasks if not away else ():
            for webhook in task.webhooks:
                webhook.arrived += [got.seq for got in self.there.at(webhook.path)]
                assert webhook.removed or webhook.arrived == webhook.due, "each event, once, in order"
