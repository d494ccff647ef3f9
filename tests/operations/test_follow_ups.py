"""Messages to a task that is at work: each is heard by its agent, or refused; none is lost at the end of a run."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from a2a.agents import agent
from a2a.errors import UnsupportedOperation
from a2a.events import MessageAdded
from a2a.inbox import Inbox
from a2a.run import Run as Given
from a2a.states import TaskState
from tasks_app.event_log import NEWER_MESSAGE, Appended, NewerMessage, append_many, claim, create_many
from tasks_app.models import Event, Run, Task
from tasks_app.runner.runner import runner
from tests.conftest import PATIENCE, Person, until
from tests.operations.asking import message, sent, text_of
from tests.operations.rows import addition, creation, status, together, wish

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]
GATE: dict[str, bool] = {}
HEARD: set[str] = set()


@pytest.fixture(autouse=True)
def _gate() -> Iterator[None]:
    GATE.clear()
    HEARD.clear()
    yield
    GATE["open"] = True


@agent(name="never-looks")
async def never_looks(run: Given) -> AsyncIterator[Any]:
    """Works for a while, and says what was said before it began."""
    while not GATE.get("open"):  # noqa: ASYNC110  # the test opens it
        await asyncio.sleep(0.005)
    HEARD.update(said.text for said in run.history)
    yield " ".join(said.text for said in run.history if said.role == "user")


@agent(name="looks-once")
async def looks_once(run: Given) -> AsyncIterator[Any]:
    """Looks into its inbox at the end of its work."""
    yield "working"
    await asyncio.sleep(0.02)
    HEARD.update(said.text for said in run.history)
    HEARD.update(said.text for said in run.inbox)
    yield " done"


@agent(name="hears-the-last")
async def hears_the_last(run: Given) -> AsyncIterator[Any]:
    """Works until the last message has come."""
    while "last" not in [said.text for said in run.inbox]:  # noqa: ASYNC110  # an inbox is a list
        await asyncio.sleep(0.005)
    HEARD.update(said.text for said in run.inbox)
    yield "done"


@agent(name="asks-late")
async def asks_late(run: Given) -> AsyncIterator[Any]:
    """Asks back after a while, unless a color was said."""
    while not GATE.get("open"):  # noqa: ASYNC110  # the test opens it
        await asyncio.sleep(0.005)
    yield run.text if run.text == "blue" else run.ask("Which color?")


@agent(name="leaves-late")
async def leaves_late(run: Given) -> AsyncIterator[Any]:
    """Asks back, and clears up for a while."""
    yield "working"
    if run.text == "blue":
        return
    try:
        yield run.ask("Which color?")
    finally:
        GATE["leaving"] = True
        while not GATE.get("open"):  # noqa: ASYNC110  # the test opens it
            await asyncio.sleep(0.005)


def working(owner: Person, name: str) -> str:
    started = sent(owner, "first", name, return_immediately=True)
    until(lambda: Task.objects.get(pk=started.id).state == "working", "it is worked on")
    return started.id


# ------------------------------------------------------------ by the service


@pytest.mark.usefixtures("service")
def test_an_agent_that_never_looks_is_called_again_with_each_message(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "tasks_app.runner")
    for number in range(10):
        GATE.clear()
        task_id = working(owner, "never-looks")
        sent(owner, message(f"more {number}", task_id=task_id), return_immediately=True)
        GATE["open"] = True
        until(lambda: Task.objects.get(pk=task_id).state == "completed", "it ends")  # noqa: B023  # waited for here
        assert f"more {number}" in HEARD
        outcomes = list(Run.objects.filter(task_id=task_id).order_by("fence").values_list("outcome", flat=True))
        assert outcomes == ["continued", "completed"]
        until(lambda: f"{task_id} fence 2: completed" in caplog.text, "it is in the log")  # noqa: B023  # the same
        assert f"{task_id} fence 1: continued" in caplog.text
        assert Task.objects.get(pk=task_id).attempt == 1, "the new message counts against no limit"


@pytest.mark.usefixtures("service")
def test_a_caller_who_waits_is_answered_when_the_message_was_heard(owner: Person) -> None:
    task_id = working(owner, "never-looks")
    sent(owner, message("second", task_id=task_id), return_immediately=True)
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(sent, owner, message("third", task_id=task_id))
        until(lambda: Event.objects.filter(task_id=task_id, kind="message").count() == 2, "both messages are there")
        assert not waiting.done()
        GATE["open"] = True
        assert text_of(waiting.result(PATIENCE)).endswith("first second third")


@pytest.mark.usefixtures("service")
def test_a_message_is_heard_that_comes_while_its_agent_is_about_to_be_called(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def prepared(*of: Any) -> Any:
        GATE["preparing"] = True
        until(lambda: GATE.get("prepared"), "the first message is there")
        return ()

    monkeypatch.setattr("tasks_app.runner.preparing.conversation_of", prepared)
    opening = message("opening", context_id="a talk of before")
    task_id = sent(owner, opening, "hears-the-last", return_immediately=True).id
    until(lambda: GATE.get("preparing"), "the agent is not called yet")
    sent(owner, message("first", task_id=task_id), return_immediately=True)
    until(lambda: runner.running[task_id].is_look_due, "the run knows that there is a message")
    GATE["prepared"] = True
    sent(owner, message("last", task_id=task_id), return_immediately=True)
    until(lambda: Task.objects.get(pk=task_id).state == "completed", "it ends")
    assert {"first", "last"} <= HEARD


@pytest.mark.usefixtures("service")
def test_a_question_is_not_put_while_the_answer_waits(owner: Person) -> None:
    task_id = working(owner, "asks-late")
    sent(owner, message("blue", task_id=task_id), return_immediately=True)
    GATE["open"] = True
    until(lambda: Task.objects.get(pk=task_id).state == "completed", "it ends")
    states = list(Event.objects.filter(task_id=task_id, state__isnull=False).order_by("seq"))
    assert [event.state for event in states] == ["submitted", "working", "submitted", "working", "completed"]
    assert "Which color?" in states[2].payload, "what the agent said is kept"


@pytest.mark.usefixtures("service")
def test_a_message_during_the_clearing_up_after_a_question_is_heard(owner: Person) -> None:
    task_id = working(owner, "leaves-late")
    until(lambda: GATE.get("leaving"), "it has asked")
    sent(owner, message("blue", task_id=task_id), return_immediately=True)
    GATE["open"] = True
    until(lambda: Task.objects.get(pk=task_id).state == "completed", "it ends")
    outcomes = list(Run.objects.filter(task_id=task_id).order_by("fence").values_list("outcome", flat=True))
    assert outcomes == ["continued", "completed"]


@pytest.mark.usefixtures("service")
def test_a_run_that_has_asked_is_not_given_back_when_the_process_ends(owner: Person) -> None:
    task_id = working(owner, "leaves-late")
    until(lambda: GATE.get("leaving"), "it has asked")
    runner.running[task_id].release()
    until(Run.objects.exists, "it ends")
    assert Task.objects.get().state == "input_required"
    assert Run.objects.get().outcome == "input_required"
    states = Event.objects.filter(state__isnull=False).order_by("seq").values_list("state", flat=True)
    assert list(states) == ["submitted", "working", "input_required"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("name", ["looks-once", "never-looks"])
def test_each_message_that_races_the_end_is_heard_or_refused(owner: Person, name: str) -> None:
    GATE["open"] = True
    started = sent(owner, "first", name, return_immediately=True)

    def follow_up(number: int) -> str:
        return sent(owner, message(f"word-{number}", task_id=started.id), return_immediately=True).id

    results = together(32, follow_up)
    assert all(result == started.id or isinstance(result, UnsupportedOperation) for result in results), results
    until(lambda: Task.objects.get(pk=started.id).state == "completed", "it ends")
    accepted = {f"word-{number}" for number, result in enumerate(results) if result == started.id}
    assert accepted <= HEARD
    assert Event.objects.filter(task_id=started.id, kind="message").count() == len(accepted)


# ------------------------------------------------------------ in the log


def test_a_run_ends_a_task_only_if_it_has_heard_the_newest_message(owner: Person) -> None:
    item = creation(owner, "k")
    create_many([item])
    (read,) = claim(wish())
    task_id = read.document.id

    def end(heard: int | None, state: TaskState = TaskState.COMPLETED) -> Appended | NewerMessage:
        (result,) = append_many([addition(task_id, status(state), fence=read.fence, newest_message=heard)])
        assert isinstance(result, Appended | NewerMessage)
        return result

    append_many([addition(task_id, MessageAdded(message=message("psst")))])
    assert Task.objects.get().message_seq == 3
    assert end(2) is NEWER_MESSAGE
    assert Event.objects.count() == 3, "nothing was written"
    append_many([addition(task_id, status(TaskState.WORKING, "well"), MessageAdded(message=message("psst")))])
    assert Task.objects.get().message_seq == 5
    assert end(4) is NEWER_MESSAGE
    assert end(5, TaskState.INPUT_REQUIRED) == Appended(6, stale=True)


def test_a_failure_is_final_whatever_waits(owner: Person) -> None:
    create_many([creation(owner, "k")])
    (read,) = claim(wish())
    append_many([addition(read.document.id, MessageAdded(message=message("psst")))])
    failed = addition(read.document.id, status(TaskState.FAILED), fence=read.fence)
    assert append_many([failed]) == [Appended(4, stale=True)]


# ------------------------------------------------------------ in the inbox


@pytest.mark.parametrize(
    "look",
    [len, bool, list, repr, lambda inbox: inbox[-1], lambda inbox: inbox.pop(0), lambda inbox: inbox == []],
    ids=["len", "bool", "list", "repr", "index", "pop", "equal"],
)
def test_every_use_of_the_inbox_is_a_look(look: Any) -> None:
    inbox = Inbox()
    inbox.show(message("one"), 7)
    inbox.show(message("two"), 9)
    assert inbox.cursor == 0
    look(inbox)
    assert inbox.cursor == (0 if look is repr else 9), "a debugger is no reader"


def test_an_inbox_is_a_list() -> None:
    inbox, words = Inbox(), [message("one"), message("two"), message("three")]
    for seq, word in enumerate(words):
        inbox.show(word, seq)
    assert inbox == words
    assert inbox[1:] == words[1:]
    del inbox[0]
    inbox.insert(0, words[2])
    inbox[1] = words[0]
    assert [*inbox] == [words[2], words[0], words[2]]
