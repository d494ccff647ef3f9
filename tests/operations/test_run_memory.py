"""The memory that agents get with their runs, in every form of agent, and in plays."""

import pytest

from a2a.errors import MemoryNotFound
from a2a.memory import RetrieveMemory, StoreMemory
from a2a.play_memory import PlayMemory
from a2a.run import Run
from a2a.testing import play
from tests.conftest import Person
from tests.operations.asking import ask, sent, text_of
from tests.support.memory_agents import remembers, remembers_in_a_thread


@pytest.mark.django_db(transaction=True)
@pytest.mark.storage
@pytest.mark.usefixtures("service")
def test_agents_of_every_form_share_the_memory_of_their_owner(owner: Person, stranger: Person) -> None:
    ask(owner, StoreMemory(namespace="default", key="note", data={"from": "the owner"}))
    ask(stranger, StoreMemory(namespace="default", key="note", data={"from": "the stranger"}))
    for name in ("remembers", "remembers-quickly", "remembers-in-a-thread"):
        task = sent(owner, "hello", agent=name)
        assert text_of(task) == "the owner said hello", name
        assert ask(owner, RetrieveMemory(namespace="default", key=name)).data == "hello"
        with pytest.raises(MemoryNotFound):
            ask(stranger, RetrieveMemory(namespace="default", key=name))
        ask(owner, StoreMemory(namespace="default", key=name, data="seen"))


def test_a_play_has_a_memory_of_its_own() -> None:
    memory = _with_note()
    for function in (remembers, remembers_in_a_thread):
        assert play(function, "hello", memory=memory).text == "the test said hello"
    with pytest.raises(MemoryNotFound):
        play(remembers, "hello")


def test_a_run_without_a_server_says_that_it_has_no_memory() -> None:
    run = play(remembers, "hello", memory=_with_note()).run
    bare = Run(run.agent, task_id="task", context_id="context", message=run.message)
    with pytest.raises(LookupError, match="has no memory"):
        _ = bare.memory


def _with_note() -> PlayMemory:
    memory = PlayMemory()
    memory.ask_now(StoreMemory(namespace="default", key="note", data={"from": "the test"}))
    return memory
