"""An agent knows who sent the message that it answers: the account, its tenant, and what the key may do."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from a2a.agents import agent
from a2a.callers import Caller
from a2a.failures import Retry
from a2a.run import Run
from tasks_app.hints import hints
from tasks_app.models import Task
from tests.conftest import Person, person, until
from tests.operations.asking import message, sent

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]
SEEN: list[Caller] = []


@pytest.fixture(autouse=True)
def _unseen() -> None:
    SEEN.clear()


def say(run: Run) -> dict[str, Any]:
    SEEN.append(run.caller)
    return {"name": run.caller.name, "tenant": run.caller.tenant, "scopes": sorted(run.caller.scopes)}


@agent
async def who(run: Run) -> AsyncIterator[Any]:
    """Says who calls."""
    yield say(run)


@agent
def who_in_a_thread(run: Run) -> Iterator[Any]:
    """Says who calls, in a thread."""
    yield say(run)


@agent(quick=True)
async def who_quickly(run: Run) -> Any:
    """Says who calls, within the call."""
    return say(run)


@agent(quick=True)
def who_quickly_in_a_thread(run: Run) -> Any:
    """Says who calls, within the call and in a thread."""
    return say(run)


@agent(attempts=2, backoff=0)
async def who_again(run: Run) -> Any:
    """Says who calls at the second attempt."""
    if run.attempt == 1:
        say(run)
        raise Retry
    return say(run)


@agent
async def who_answers(run: Run) -> AsyncIterator[Any]:
    """Asks, and says who answered."""
    said = say(run)
    yield run.ask("Who is there?") if len(run.history) == 1 else said


OWNER = {"name": "owner", "tenant": "home"}
EVERYWHERE = ["who", "who-in-a-thread", "who-quickly", "who-quickly-in-a-thread", "who-again"]


def answer_of(task: Any) -> dict[str, Any]:
    return task.artifacts[0].parts[0].data  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", EVERYWHERE)
def test_an_agent_knows_its_caller(owner: Person, name: str) -> None:
    limited = person("owner", "home", "tasks:read tasks:write")
    assert answer_of(sent(limited, "hello", name)) == {**OWNER, "scopes": ["tasks:read", "tasks:write"]}
    assert answer_of(sent(owner, "hello", name)) == {**OWNER, "scopes": ["*"]}
    assert len(SEEN) == (4 if name == "who-again" else 2)


@pytest.mark.parametrize("name", EVERYWHERE[:3])
def test_each_caller_is_told_by_their_own_name(colleague: Person, stranger: Person, name: str) -> None:
    for other in (colleague, stranger):
        said = answer_of(sent(other, "hello", name))
        assert (said["name"], said["tenant"]) == (other.caller.name, other.caller.tenant)


def test_the_caller_is_who_sent_the_message_of_this_turn(owner: Person) -> None:
    limited = person("owner", "home", "tasks:write")
    task = sent(owner, "hello", "who-answers")
    done = sent(limited, message("me", task_id=task.id))
    assert answer_of(done) == {**OWNER, "scopes": ["tasks:write"]}
    assert [sorted(caller.scopes) for caller in SEEN] == [["*"], ["tasks:write"]]


def test_a_message_of_an_earlier_version_has_its_owner_as_caller(owner: Person) -> None:
    task = sent(owner, "hello", "who-answers")
    assert task.status.state == "input_required"
    Task.objects.update(wants="", state="submitted")
    hints.offer()
    until(lambda: len(SEEN) == 2, "the second call")
    assert SEEN[1] == Caller(name="owner", tenant="home")


def test_a_caller_may_what_the_scopes_of_its_key_say() -> None:
    caller = Caller(name="n", tenant="t", scopes=frozenset({"a", "b"}))
    assert caller.may("a")
    assert caller.may("b", "a")
    assert caller.may()
    assert not caller.may("a", "c")
    assert replace(caller, scopes=frozenset({"*"})).may("c")
    with pytest.raises(AttributeError):
        caller.name = "other"  # type: ignore[misc]  # it cannot be changed
