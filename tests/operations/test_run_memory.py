"""The memory that agents get with their runs, in every form of agent, and in plays."""

from unittest.mock import Mock

import pytest
from django.conf import LazySettings
from django.db import OperationalError

from a2a.errors import MemoryNotFound
from a2a.memory import RetrieveMemory, StoreMemory
from a2a.play_memory import PlayMemory
from a2a.run import Run
from a2a.testing import play
from tasks_app.database import outages
from tasks_app.memory import runs
from tasks_app.memory.entries import Holder
from tests.conftest import Person
from tests.operations.asking import ask, sent, text_of
from tests.operations.reads import beside_reads
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


@pytest.mark.django_db(transaction=True)
@pytest.mark.storage
@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("name", ["remembers", "remembers-in-a-thread"])
def test_an_agent_has_its_memory_whatever_its_caller_reads(owner: Person, settings: LazySettings, name: str) -> None:
    ask(owner, StoreMemory(namespace="default", key="note", data={"from": "the owner"}))
    task = beside_reads(owner, settings, lambda: sent(owner, "hello", agent=name))
    assert text_of(task) == "the owner said hello"


@pytest.mark.parametrize(("task_id", "version", "calls"), [("t", None, 3), ("t", 0, 1), (None, None, 1)])
def test_only_what_is_harmless_to_repeat_waits_for_the_database(
    monkeypatch: pytest.MonkeyPatch, task_id: str | None, version: int | None, calls: int
) -> None:
    answers = [OperationalError("away"), OperationalError("away"), "done"]
    bridge = Mock()
    bridge.do.side_effect = answers
    for module in (runs, outages):
        monkeypatch.setattr(module, "bridge", bridge)
    monkeypatch.setattr(outages, "PAUSE", 0.0)
    memory = runs.RunMemory(Holder(tenant_id=1, owner_id=1, author="a", task_id=task_id))
    request = StoreMemory(namespace="n", key="k", data=1, if_version=version)
    if calls == 1:
        with pytest.raises(OperationalError):
            memory.ask_now(request)
    else:
        assert memory.ask_now(request) == "done"
    assert bridge.do.call_count == calls


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
