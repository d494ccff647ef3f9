"""The memory: isolation, versions, times to live, limits, lists and searches."""

from datetime import timedelta
from typing import Any

import pytest
from django.conf import LazySettings
from hypothesis import given
from hypothesis import settings as hypothesis
from hypothesis import strategies as st

from a2a.errors import InvalidParams, MemoryNotFound, MissingScope, PermissionDenied, UnsupportedOperation
from a2a.events import StatusChanged
from a2a.memory import (
    AttemptOver,
    DeleteMemory,
    ListMemory,
    MemoryDeletion,
    RetrieveMemory,
    SearchMemory,
    StoreMemory,
)
from a2a.requests import CancelTask
from a2a.states import TaskState
from a2a.types import Status
from tasks_app import clock
from tasks_app.callers.access import caller_for
from tasks_app.callers.rules import Rule, encode_rules
from tasks_app.database.bridge import bridge
from tasks_app.event_log import Claim, Demand, change, claim
from tasks_app.memory.entries import Holder, store
from tasks_app.models import MemoryEntry, MemoryUse, Principal
from tasks_app.upkeep.row_kinds import ROW_KINDS
from tests.conftest import Person, person
from tests.operations.asking import ask, sent
from tests.operations.remembering import SPEC, found, get, keys, put, refused
from tests.support.hand import Hand

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def use_of(who: Person) -> tuple[int, int]:
    use = MemoryUse.objects.get(pk=who.caller.owner_id)
    rows = MemoryEntry.objects.filter(owner_id=who.caller.owner_id)
    assert (use.entries, use.size) == (rows.count(), sum(row.size for row in rows))
    return use.entries, use.size


# ------------------------------------------------------------------- entries


def test_an_entry_comes_back_as_it_was_stored(owner: Person) -> None:
    entry = put(owner, "workflow-001-specification", SPEC, ttl=3600)
    assert (entry.namespace, entry.key, entry.version) == ("sparc", "workflow-001-specification", 1)
    assert entry.expires_at == entry.updated_at + timedelta(hours=1)
    again = get(owner, "workflow-001-specification")
    assert again.data == SPEC
    assert again.version == 1


@hypothesis(max_examples=15)
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(2**53), 2**53)
        | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), inner, max_size=3
            )
        ),
        max_leaves=8,
    )
)
def test_any_json_comes_back(data: Any) -> None:
    owner = person("owner", "home")
    put(owner, "any", data)
    assert get(owner, "any").data == data
    assert found(owner, text="any") == ["any"]


def test_the_last_write_wins_and_has_the_next_version(owner: Person) -> None:
    assert [put(owner, data=data).version for data in ("one", "two", "two")] == [1, 2, 3]
    assert get(owner).data == "two"
    assert use_of(owner) == (1, 5)


def test_a_write_to_another_version_is_refused(owner: Person) -> None:
    put(owner, data="one", if_version=0)
    for version in (0, 2):
        with refused("ifVersion"):
            put(owner, data="two", if_version=version)
        with refused("ifVersion"):
            ask(owner, DeleteMemory(namespace="sparc", key="key", if_version=version or 7))
    assert put(owner, data="two", if_version=1).version == 2
    for data in ("two", "three"):
        with refused("the entry has version 2"):
            put(owner, data=data, if_version=1)


def test_a_deleted_entry_is_gone_and_its_room_is_free(owner: Person) -> None:
    put(owner)
    gone = ask(owner, DeleteMemory(namespace="sparc", key="key", if_version=1))
    assert gone == MemoryDeletion(namespace="sparc", key="key")
    assert use_of(owner) == (0, 0)
    for request in (RetrieveMemory(namespace="sparc", key="key"), DeleteMemory(namespace="sparc", key="key")):
        with pytest.raises(MemoryNotFound) as refusal:
            ask(owner, request)
        assert refusal.value.facts == {"namespace": "sparc", "key": "key"}


def test_the_entry_of_another_is_as_one_that_does_not_exist(owner: Person, colleague: Person, stranger: Person) -> None:
    put(owner, data={"secret": "of the owner"})
    for other in (colleague, stranger):
        for request in (RetrieveMemory(namespace="sparc", key="key"), DeleteMemory(namespace="sparc", key="key")):
            with pytest.raises(MemoryNotFound) as refusal:
                ask(other, request)
            assert refusal.value.facts == {"namespace": "sparc", "key": "key"}
        assert keys(other) == keys(other, None) == found(other, text="owner") == []
        put(other, data="their own")
    assert get(owner).data == {"secret": "of the owner"}
    assert get(stranger).data == "their own"


def test_namespaces_are_apart(owner: Person) -> None:
    put(owner, data=1, namespace="one")
    put(owner, data=2, namespace="two")
    assert [get(owner, namespace=name).data for name in ("one", "two")] == [1, 2]
    assert keys(owner, "one") == ["key"]
    assert keys(owner, None) == ["key", "key"]
    with pytest.raises(MemoryNotFound):
        get(owner, namespace="three")


# ---------------------------------------------------------------- expiration


def test_an_expired_entry_is_invisible_at_once_and_removed_later(owner: Person, hand: Hand) -> None:
    put(owner, "short", ttl=10)
    put(owner, "long", ttl=1000)
    put(owner, "stays")
    hand.on(seconds=9)
    assert keys(owner) == ["long", "short", "stays"]
    hand.on(seconds=1)
    assert keys(owner) == found(owner, text="data") == ["long", "stays"]
    for request in (RetrieveMemory(namespace="sparc", key="short"), DeleteMemory(namespace="sparc", key="short")):
        with pytest.raises(MemoryNotFound):
            ask(owner, request)
    assert MemoryEntry.objects.filter(key="short").exists()
    kind, later = ROW_KINDS["memory"], hand() + timedelta(seconds=1)
    assert kind.old(later).count() == 1
    assert kind.delete(later, "", 100).count == 1
    assert not MemoryEntry.objects.filter(key="short").exists()
    assert use_of(owner)[0] == 2


def test_a_write_after_the_end_begins_the_entry_again(owner: Person, hand: Hand) -> None:
    first = put(owner, data="old", ttl=10)
    hand.on(seconds=10)
    again = put(owner, data="new", if_version=0)
    assert again.created_at > first.created_at
    assert again.expires_at is None
    assert get(owner).data == "new"


def test_no_entry_lives_longer_than_the_setting(owner: Person, settings: LazySettings) -> None:
    settings.A2A_MEMORY_DAYS = 1
    day = timedelta(days=1)
    for ttl, life in ((None, day), (10**6, day), (60, timedelta(minutes=1))):
        entry = put(owner, ttl=ttl)
        assert entry.expires_at == entry.updated_at + life


# -------------------------------------------------------------------- limits


def test_a_large_value_is_refused_with_the_limit(owner: Person, settings: LazySettings) -> None:
    settings.A2A_MEMORY_ENTRY_BYTES = 10
    put(owner, data="x" * 8)
    with refused("data must have 10 bytes at most, not 11"):
        put(owner, data="x" * 9)


def test_an_owner_has_a_number_of_entries_and_of_bytes(
    owner: Person, stranger: Person, settings: LazySettings, hand: Hand
) -> None:
    settings.A2A_OWNER_MEMORY_ENTRIES, settings.A2A_OWNER_MEMORY_BYTES = 2, 30
    put(owner, "one", ttl=5)
    put(owner, "two")
    with pytest.raises(UnsupportedOperation) as refusal:
        put(owner, "three")
    assert "2 entries at most" in refusal.value.facts["detail"]
    put(owner, "two", "another")
    with pytest.raises(UnsupportedOperation) as refusal:
        put(owner, "two", "x" * 40)
    assert "30 bytes at most" in refusal.value.facts["detail"]
    put(stranger, "one")
    hand.on(seconds=5)
    put(owner, "three")  # The room of the expired entry is free, before the upkeep comes.
    assert keys(owner) == ["three", "two"]
    use_of(owner)


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("namespace", {"namespace": ""}),
        ("namespace", {"namespace": "x" * 129}),
        ("key", {"key": ""}),
        ("key", {"key": "x" * 256}),
        ("key", {"key": "a\0b"}),
        ("ttl", {"ttl": 0}),
        ("ttl", {"ttl": -1.5}),
        ("ttl", {"ttl": 1e300}),
        ("data", {"data": "a\0b"}),
        ("data", {"data": {"a": ["\0"]}}),
        ("ifVersion", {"if_version": -1}),
    ],
)
def test_a_wrong_value_is_named(owner: Person, field: str, values: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams) as refusal:
        put(owner, **{"key": "key", "data": 1, **values})
    assert refusal.value.violations[0][0] == field
    assert not MemoryEntry.objects.exists()


# -------------------------------------------------------------------- rights


def test_reads_and_writes_need_their_scopes(owner: Person) -> None:
    reader, writer = person("owner", "home", "tasks:read"), person("owner", "home", "tasks:write")
    put(writer)
    assert get(reader).data == "data"
    for who, request in (
        (reader, StoreMemory(namespace="sparc", key="key", data=1)),
        (reader, DeleteMemory(namespace="sparc", key="key")),
        (writer, RetrieveMemory(namespace="sparc", key="key")),
        (writer, ListMemory()),
        (writer, SearchMemory(namespace="sparc", text="x")),
    ):
        with pytest.raises(MissingScope):
            ask(who, request)


def test_permissions_say_which_namespaces_a_caller_may_use(owner: Person) -> None:
    principal = Principal.objects.select_related("tenant").get(pk=owner.caller.owner_id)
    put(owner, namespace="private")
    principal.rules = encode_rules([Rule(allows=True, kind="namespace", pattern="sparc*")])
    bound = Person("", caller_for(principal, owner.caller.scopes))
    put(bound, namespace="sparc-2")
    for request in (
        StoreMemory(namespace="private", key="key", data=1),
        RetrieveMemory(namespace="private", key="key"),
        DeleteMemory(namespace="private", key="key"),
        ListMemory(namespace="private"),
        SearchMemory(namespace="private", text="data"),
    ):
        with pytest.raises(PermissionDenied) as refusal:
            ask(bound, request)
        assert refusal.value.facts == {"kind": "namespace", "name": "private"}
    with refused("namespace is required"):
        keys(bound, None)


# ---------------------------------------------------------------------- runs


def claimed(who: Person, task_id: str) -> Holder:
    """Return the holder of the memory for a new run of a task."""
    demand = Demand(agents=("gate",), queues=("default",), limit=1)
    (read,) = claim(Claim(worker="w", demands=(demand,)))
    assert read.document.id == task_id
    caller = who.caller
    return Holder(
        tenant_id=caller.tenant_id, owner_id=caller.owner_id, author="gate", task_id=task_id, fence=read.fence
    )


def test_an_attempt_that_is_over_writes_nothing(owner: Person) -> None:
    task = sent(owner, agent="gate", return_immediately=True)
    first = claimed(owner, task.id)
    one, late = (StoreMemory(namespace="sparc", key="key", data=data) for data in ("one", "late"))
    assert store(first, one).version == 1
    again = StatusChanged(status=Status(state=TaskState.SUBMITTED, timestamp=clock.now()))
    bridge.do(change(task.id, task.context_id, [again], now=clock.now(), actor="runner", fence=first.fence))
    with pytest.raises(AttemptOver):
        store(first, late)
    second = claimed(owner, task.id)
    with pytest.raises(AttemptOver):
        store(first, late)
    assert store(second, one).version == 1, "the second attempt has stored the same again"
    assert store(second, StoreMemory(namespace="sparc", key="key", data="two")).version == 2
    ask(owner, CancelTask(id=task.id))
    with pytest.raises(AttemptOver):
        store(second, late)
    assert get(owner).data == "two"
