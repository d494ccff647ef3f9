"""Send: a new task, the next turn of one, or a direct reply; what is refused makes nothing."""

import threading
from typing import Any

import pytest

from a2a.agents import Agent
from a2a.errors import (
    IdempotencyConflict,
    InvalidParams,
    MissingScope,
    TaskNotFound,
    UnknownAgent,
    UnsupportedOperation,
)
from a2a.requests import SendMessage
from a2a.types import Message, Part, Role
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.models import DirectReply, Event, IdempotencyKey, Task
from tasks_app.off_loop import LARGE
from tasks_app.operations.repeat import fingerprint
from tests.conftest import Person, person
from tests.operations.asking import ask, data, message, send, sent, shown, text_of, words
from tests.operations.rows import forget

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def nothing_stored() -> bool:
    return not (Task.objects.exists() or Event.objects.exists() or IdempotencyKey.objects.exists())


@pytest.mark.parametrize("form", ["async-generator", "coroutine", "generator", "function"])
def test_a_quick_agent_of_any_form_completes_inside_the_call(owner: Person, form: str) -> None:
    task = sent(owner, "hello", f"quick-{form}")
    assert (task.status.state, text_of(task)) == ("completed", "hello")
    assert Task.objects.get().fence == 0


def test_the_blocking_flag_does_not_matter_to_a_quick_agent(owner: Person) -> None:
    assert sent(owner, "hello", "echo", return_immediately=True).status.state == "completed"


@pytest.mark.requirement("SPARC-02")
def test_a_quick_agent_may_answer_with_a_bare_message(owner: Person) -> None:
    answer = send(owner, "hello", "replies")
    assert answer.task is None
    assert answer.message is not None
    assert (answer.message.text, answer.message.role, answer.message.task_id) == ("You said hello", Role.AGENT, None)
    assert answer.message.context_id
    assert not Task.objects.exists()
    assert DirectReply.objects.get().owner_id == owner.caller.owner_id


@pytest.mark.requirement("ZONE-11")
def test_a_queued_agent_leaves_a_submitted_task_when_the_caller_does_not_wait(owner: Person) -> None:
    task = sent(owner, "hello", "form-coroutine", return_immediately=True)
    assert task.status.state == "submitted"
    assert [said.text for said in task.history] == ["hello"]


def test_waiting_has_a_limit_after_which_the_task_is_shown_as_it_is(owner: Person, settings: Any) -> None:
    settings.A2A_WAIT_SECONDS = 0.2
    assert sent(owner, "hello", "form-coroutine").status.state == "submitted"


def test_a_task_belongs_to_who_sent_the_message(owner: Person, stranger: Person) -> None:
    sent(owner, "hello", "echo")
    sent(stranger, "hello", "echo")
    assert {(task.tenant_id, task.owner_id) for task in Task.objects.all()} == {
        (owner.caller.tenant_id, owner.caller.owner_id),
        (stranger.caller.tenant_id, stranger.caller.owner_id),
    }


def test_a_history_of_length_zero_leaves_the_history_out(owner: Person) -> None:
    for length, is_there in ((0, False), (1, True), (None, True)):
        answer = send(owner, "hello", "echo", history_length=length)
        assert answer.task
        assert (b'"history"' in answer.task.json(answer.history_length)) is is_there


def test_a_context_is_adopted_and_its_string_means_another_one_to_another_owner(
    owner: Person, stranger: Person
) -> None:
    send(owner, message("mine", context_id="shared"), "replies")
    assert sent(owner, message("hello", context_id="shared"), "echo").context_id == "shared"
    sent(stranger, message("hello", context_id="shared"), "echo")
    assert DirectReply.objects.filter(owner_id=stranger.caller.owner_id).count() == 0


def test_metadata_and_every_kind_of_part_come_back(owner: Person) -> None:
    parts = (Part(text="t"), Part(raw=b"\0\xff"), Part(url="https://example.org/a"), Part(data=None), Part(data=[1]))
    task = sent(owner, message(parts=parts, metadata={"a": [1]}), "echo", metadata={"b": None})
    assert task.artifacts[0].parts == parts
    assert (task.metadata, task.history[0].metadata) == ({"b": None}, {"a": [1]})


# ----------------------------------------------------------- which agent


def test_an_agent_is_named_by_address_metadata_or_skill(owner: Person) -> None:
    sent(owner, "hello", metadata={"agent": "bench"})
    sent(owner, "hello", metadata={"skill": "quick-function"})
    sent(owner, "hello", "echo", metadata={"agent": "bench"})
    sent(owner, "hello")
    assert sorted(Task.objects.values_list("agent", flat=True)) == ["bench", "echo", "echo", "quick-function"]


@pytest.mark.parametrize("metadata", [{"agent": "nobody"}, {"skill": "nothing"}])
def test_an_unknown_agent_is_never_a_silent_default(owner: Person, metadata: dict[str, str]) -> None:
    with pytest.raises(UnknownAgent):
        send(owner, metadata=metadata)
    assert nothing_stored()


@pytest.mark.requirement("ACP-21")
def test_an_agent_is_named_by_the_request_itself(owner: Person) -> None:
    asking = SendMessage(message=message(), agent="bench", metadata={"agent": "echo"})
    assert shown(ask(owner, asking)).status.state == "completed"
    assert shown(ask(owner, SendMessage(message=message(), agent="bench"), agent="bench"))
    assert set(Task.objects.values_list("agent", flat=True)) == {"bench"}


@pytest.mark.requirement("ACP-21")
@pytest.mark.parametrize(("name", "address"), [("nobody", None), ("nobody", "bench"), ("echo", "bench")])
def test_a_named_agent_that_is_not_at_the_address_is_unknown(owner: Person, name: str, address: str | None) -> None:
    with pytest.raises(UnknownAgent) as refusal:
        ask(owner, SendMessage(message=message(), agent=name), agent=address)
    assert refusal.value.facts == {"agent": name}
    assert nothing_stored()


@pytest.mark.parametrize("metadata", [{"agent": 1}, {"skill": None}])
def test_an_agent_that_is_no_text_is_named_as_a_mistake(owner: Person, metadata: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as told:
        send(owner, metadata=metadata)
    assert told.value.violations == ((f"metadata.{next(iter(metadata))}", "must be a string"),)


# -------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        (message(role=Role.AGENT), "message.role"),
        (message(context_id="x" * 256), "message.contextId"),
    ],
    ids=["the agent's role", "a long context"],
)
def test_a_message_that_may_not_be_makes_nothing(owner: Person, wrong: Message, field: str) -> None:
    with pytest.raises(InvalidParams) as told:
        send(owner, wrong)
    assert [name for name, _ in told.value.violations] == [field]
    assert nothing_stored()


@pytest.mark.parametrize("agent", ["inputs", "quick-inputs"])
@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        (data({}), ".city is required"),
        (data({"city": 1}), ".city must be a string, not an integer"),
        (data({"city": "Rome", "days": "two"}), ".days must be an integer, not a string"),
        (data({"city": "Rome", "more": 1}), ".more is unknown; the agent takes: city, days"),
        (data([1]), " must be an object, not an array"),
        (message(), ".city is required"),
    ],
    ids=["missing", "type", "type of an option", "extra", "no object", "no data"],
)
def test_inputs_that_do_not_fit_make_no_task(owner: Person, agent: str, wrong: Message, fault: str) -> None:
    with pytest.raises(InvalidParams) as told:
        send(owner, wrong, agent)
    assert " ".join(told.value.violations[0]) == f"message.parts[0].data{fault}"
    assert nothing_stored()


def test_inputs_come_from_the_first_data_part(owner: Person) -> None:
    parts = (Part(text="please"), Part(data={"city": "Rome", "days": 3}), Part(data={"city": "Oslo"}))
    assert text_of(sent(owner, message(parts=parts), "quick-inputs")) == "3 days of rain in Rome"


def test_an_agent_may_want_a_scope_of_its_own(db: None) -> None:
    with pytest.raises(MissingScope):
        send(person("poor", "home", "tasks:write tasks:read"), agent="scoped")
    assert nothing_stored()
    assert sent(person("rich", "home", "tasks:write weather"), agent="scoped").status.state == "completed"


def test_a_tenant_is_the_callers_own_or_unknown(owner: Person) -> None:
    assert sent(owner, "hello", "echo", tenant="home").status.state == "completed"
    with pytest.raises(TaskNotFound):
        send(owner, "hello", "echo", tenant="abroad")


# ----------------------------------------------------------- idempotency


@pytest.mark.parametrize("agent", ["echo", "form-coroutine", "replies"])
def test_the_same_message_again_gets_the_same_outcome(owner: Person, agent: str) -> None:
    said = message("hello", message_id="once")
    first = send(owner, said, agent, return_immediately=True)
    assert send(owner, said, agent, return_immediately=True) == first
    assert Task.objects.count() + DirectReply.objects.count() == 1


@pytest.mark.parametrize("agent", ["echo", "replies"])
def test_the_same_message_again_finds_nothing_once_its_outcome_is_forgotten(
    owner: Person, settings: Any, agent: str
) -> None:
    settings.A2A_TASK_DAYS = -1  # The task's retention is shorter than A2A_KEY_HOURS.
    said = message()
    send(owner, said, agent)
    forget()
    with pytest.raises(TaskNotFound):
        send(owner, said, agent)


def test_message_ids_that_are_not_remembered_may_be_shared(owner: Person, settings: Any) -> None:
    settings.A2A_KEY_HOURS = 0
    tasks = {sent(owner, message(text, message_id="m-1"), "echo").id for text in ("one", "one", "two")}
    assert len(tasks) == 3
    asked = sent(owner, message("one", message_id="m-1"), "form-coroutine", return_immediately=True)
    for answer in ("two", "two"):
        asked = sent(owner, message(answer, message_id="m-1", task_id=asked.id), return_immediately=True)
    assert [said.parts[0].text for said in asked.history] == ["one", "two", "two"]


@pytest.mark.parametrize("agent", ["echo", "form-coroutine", "replies"])
def test_the_same_id_with_another_content_is_a_conflict(owner: Person, agent: str) -> None:
    send(owner, message("hello", message_id="once"), agent, return_immediately=True)
    with pytest.raises(IdempotencyConflict) as told:
        send(owner, message("goodbye", message_id="once"), agent, return_immediately=True)
    assert told.value.facts == {"messageId": "once"}
    assert Task.objects.count() + DirectReply.objects.count() == 1


def test_a_message_id_is_the_callers_own(owner: Person, colleague: Person, stranger: Person) -> None:
    said = message("hello", message_id="once")
    assert len({sent(who, said, "echo").id for who in (owner, colleague, stranger)}) == 3


def test_long_message_ids_are_told_apart(owner: Person) -> None:
    ids = {sent(owner, message(message_id="x" * 300 + end), "echo").id for end in ("a", "b", "a")}
    assert len(ids) == 2


# ------------------------------------------------------------- follow-ups


def test_a_message_to_a_submitted_task_is_appended(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    again = sent(owner, message("two", task_id=task.id), return_immediately=True)
    assert [said.text for said in again.history] == ["one", "two"]
    assert again.status.state == "submitted"


def test_the_answer_to_a_question_makes_the_task_runnable_again(owner: Person) -> None:
    task = sent(owner, "one", "asks-quickly")
    assert task.status.state == "input_required"
    again = sent(owner, message("two", task_id=task.id), return_immediately=True)
    assert again.status.state == "submitted"
    assert [said.text for said in again.history] == ["one", "Which one?", "two"]


def test_a_finished_task_refuses_a_message(owner: Person) -> None:
    task = sent(owner, "one", "echo")
    with pytest.raises(UnsupportedOperation):
        send(owner, message("two", task_id=task.id))
    assert Event.objects.filter(kind="message").count() == 0


def test_a_message_for_another_context_than_its_tasks_is_refused(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    with pytest.raises(InvalidParams) as told:
        send(owner, message("two", task_id=task.id, context_id="another"))
    assert told.value.violations == (("message.contextId", "is not the context of the task; leave it out"),)
    right = message("two", task_id=task.id, context_id=task.context_id)
    assert len(sent(owner, right, return_immediately=True).history) == 2


def test_a_repeated_follow_up_is_appended_once(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    said = message("two", task_id=task.id)
    assert sent(owner, said, return_immediately=True) == sent(owner, said, return_immediately=True)
    with pytest.raises(IdempotencyConflict):
        send(owner, message("three", task_id=task.id, message_id=said.message_id), return_immediately=True)
    assert Event.objects.filter(kind="message").count() == 1


def test_only_its_owner_can_continue_a_task(owner: Person, colleague: Person, stranger: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    for who in (colleague, stranger):
        for task_id in (task.id, "missing"):
            with pytest.raises(TaskNotFound) as told:
                send(who, message("two", task_id=task_id))
            assert told.value.facts == {"taskId": task_id}
    assert Event.objects.count() == 1


def test_a_task_is_reached_at_the_address_of_its_own_agent_only(owner: Person) -> None:
    task = sent(owner, "one", "form-coroutine", return_immediately=True)
    with pytest.raises(TaskNotFound):
        send(owner, message("two", task_id=task.id), "echo")
    sent(owner, message("two", task_id=task.id), "form-coroutine", return_immediately=True)


def test_a_message_for_a_task_that_is_not_there_creates_none(owner: Person) -> None:
    with pytest.raises(TaskNotFound):
        ask(owner, SendMessage(message=message(task_id="0193-made-up")))
    assert nothing_stored()


def test_the_words_of_a_task_are_shown_to_its_owner(owner: Person) -> None:
    assert '"hello"' in words(shown(send(owner, "hello", "echo")))


def test_the_author_decides_on_the_loop_whether_a_large_message_is_quick(
    owner: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    places: dict[str, str] = {}

    def noted(self: Agent, message: Message) -> bool:
        places["author"] = threading.current_thread().name
        return True

    def digest(message: Message, agent: str) -> str:
        places["digest"] = threading.current_thread().name
        return fingerprint(message, agent)

    monkeypatch.setattr(Agent, "is_quick", noted)
    monkeypatch.setattr("tasks_app.operations.send.fingerprint", digest)
    exchange = OpenExchange(door="http", request_id="", rpc_id=1, request=b"x" * (LARGE + 1))
    ask(owner, SendMessage(message=message("x")), agent="echo", exchange=exchange)
    assert places["digest"].startswith("large")
    assert not places["author"].startswith("large")
