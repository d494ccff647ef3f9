"""A question travels through both zones: verification checks it, and execution answers it."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.agents import agent, registry
from a2a.run import Run
from a2a.states import TaskState
from tasks_app import models, run_secrets
from tasks_app.database.prepared import prepared
from tasks_app.database.tables import SECRETS
from tasks_app.exchanges.recording import recorder
from tasks_app.models import IdempotencyKey
from tasks_app.zones import registration
from tasks_app.zones.in_process import InProcess
from tests.conftest import PATIENCE, Person, person
from tests.operations.asking import message, sent
from tests.support.hand import Hand
from tests.zones.asking import TOKEN, answers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service", "zones")]
TOKENS: list[str] = []
"""The tokens that the agent has got."""


@agent
async def reads_token(run: Run) -> str:
    """Reads the token of its message."""
    TOKENS.append(await run.secret("bot_token"))
    return f"read for {run.text}"


@pytest.fixture
def zones(db: None, settings: Any) -> Iterator[None]:
    """Have the agent `execution` call the agents of this process, as a caller of its own."""
    settings.A2A_EXECUTION, settings.A2A_EXECUTION_AGENT = "in-process", "reads-token"
    settings.A2A_EXECUTION_KEY = person("verification", "zones").key
    settings.A2A_DEFAULT_AGENT = registration.NAME
    registration.register()
    yield
    del registry._agents[registration.NAME]


@pytest.mark.requirement("ZONE-12", "ZONE-13")
def test_one_question_travels_through_both_zones(owner: Person) -> None:
    *_, last = answers(owner, correlation_id="corr-7")
    assert (last.text, last.final) == ("read for hello", True)
    assert TOKENS[-1] == TOKEN
    outer, inner = models.Task.objects.order_by("id")
    assert (outer.agent, inner.agent) == ("execution", "reads-token")
    assert recorder.drain(PATIENCE)
    calls = models.Exchange.objects.filter(rpc_id="corr-7", method="execute_task").order_by("id")
    assert [call.door for call in calls] == ["zone", "in-process"]
    assert {row.task_id for row in models.Usage.objects.filter(correlation_id="corr-7")} == {outer.id, inner.id}


def test_each_call_names_the_owner_of_its_run(owner: Person, stranger: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    names, carry = list[str](), InProcess.carry

    async def note(carrier: InProcess, body: bytes, owner: str = "") -> bytes:
        names.append(owner)
        return await carry(carrier, body, owner)

    monkeypatch.setattr(InProcess, "carry", note)
    for who in (owner, stranger):
        answers(who)
    assert list(dict.fromkeys(names)) == [f"{who.caller.tenant}/{who.caller.name}" for who in (owner, stranger)]


@pytest.mark.parametrize("facts", ["a text", 7, ["a list"], None])
def test_metadata_of_another_form_than_that_of_zones_is_left_out(owner: Person, facts: Any) -> None:
    task = sent(owner, "hello", registration.NAME, metadata={"zone": facts})
    assert task.status.state is TaskState.COMPLETED


def test_an_answer_that_comes_after_days_goes_to_the_task_that_asked(owner: Person, settings: Any) -> None:
    settings.A2A_EXECUTION_AGENT = "asks"
    asked = sent(owner, "the first", agent=registration.NAME)
    assert asked.status.state is TaskState.INPUT_REQUIRED
    IdempotencyKey.objects.all().delete()  # as retention does
    answered = sent(owner, message("the second", task_id=asked.id))
    assert answered.status.state is TaskState.COMPLETED
    assert "".join(part.text or "" for part in answered.artifacts[0].parts) == "the first and the second"
    assert sorted(models.Task.objects.values_list("agent", flat=True)) == ["asks", "execution"]


def test_a_thread_is_a_conversation_of_its_caller_in_the_execution_zone(
    owner: Person, stranger: Person, settings: Any
) -> None:
    """Let a caller of another tenant name the thread of the owner: one key stands for both in the execution zone."""
    settings.A2A_EXECUTION_AGENT = "conversation"
    for who, words in ((owner, "the secret"), (stranger, "the guess"), (owner, "the rest")):
        *_, last = answers(who, words, thread="1700000000.1")
        assert ("the secret" in last.text) is (words == "the rest")
        assert "the guess" not in last.text


def test_a_conversation_that_is_named_without_a_thread_is_one_in_the_execution_zone(
    owner: Person, settings: Any
) -> None:
    settings.A2A_EXECUTION_AGENT = "conversation"
    for words, context in (("the first", "talk"), ("another", "chat"), ("the rest", "talk")):
        task = sent(owner, message(words, context_id=context), agent=registration.NAME)
        text = "".join(part.text or "" for artifact in task.artifacts for part in artifact.parts)
        assert ("the first" in text) is (words == "the rest")
        assert "another" not in text


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("sleeper", errors.Timeout),
        ("raises", errors.InvalidAgentResponse),
        ("nobody", errors.UnknownAgent),
        ("reports", errors.InvalidAgentResponse),
        ("reports-late", errors.Timeout),
    ],
)
def test_a_failure_of_execution_is_the_same_error_of_verification(
    owner: Person, settings: Any, name: str, error: type[errors.Error]
) -> None:
    settings.A2A_EXECUTION_AGENT = name
    with pytest.raises(error):
        answers(owner)


@pytest.mark.requirement("ZONE-14")
def test_a_person_without_the_right_reaches_no_zone(owner: Person) -> None:
    weak = Person(owner.key, replace(owner.caller, scopes=frozenset({"tasks:read"})))
    with pytest.raises(errors.MissingScope):
        answers(weak)
    assert not models.Task.objects.exists()


@pytest.mark.requirement("ZONE-21")
def test_the_secret_is_gone_when_the_answer_is_there(owner: Person) -> None:
    *_, last = answers(owner)
    outer = models.Task.objects.get(pk=last.task_id)
    message = IdempotencyKey.objects.get(task_id=outer.pk).key
    key = run_secrets.key_of(outer.pk, message)
    assert not models.RunSecret.objects.filter(pk=key).exists()


def test_a_secret_ends_with_its_time(settings: Any, hand: Hand) -> None:
    key, row = run_secrets.key_of("task", "m"), run_secrets.row_of("task", "m", {"bot_token": TOKEN})
    assert row
    with prepared() as cursor:
        SECRETS.write(cursor, [row])
    assert asyncio.run(run_secrets.read(key)) == {"bot_token": TOKEN}
    hand.on(seconds=settings.A2A_SECRET_SECONDS + 1)
    assert asyncio.run(run_secrets.read(key)) == {}
