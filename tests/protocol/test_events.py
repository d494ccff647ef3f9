"""The fold: what a log of events makes of a task, as values and as stored documents."""

from datetime import UTC, datetime
from functools import reduce
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from a2a.dialects.json.json_1_0 import document, event_document, event_of, task_of
from a2a.events import ArtifactAdded, Event, MessageAdded, StatusChanged, TaskCreated, apply, status_of
from a2a.events import fold as fold_all
from a2a.scribe import merge
from a2a.states import TaskState
from a2a.types import Artifact, Message, Part, Role, Status, Task
from tests.protocol.events import NEW, chunk, message, status


def fold(*events: Event) -> Task:
    task = apply(None, TaskCreated(task=NEW))
    return reduce(apply, events, task)


def words(task: Task) -> dict[str, list[str | None]]:
    return {artifact.artifact_id: [part.text for part in artifact.parts] for artifact in task.artifacts}


def test_the_first_event_is_the_task() -> None:
    assert fold() == NEW


@pytest.mark.parametrize(
    "event",
    [
        StatusChanged(status=status(TaskState.WORKING)),
        chunk("x"),
        MessageAdded(message=message("x")),
    ],
    ids=lambda event: type(event).__name__,
)
def test_a_log_cannot_begin_with_another_event(event: Event) -> None:
    with pytest.raises(ValueError, match=f"begins with {type(event).__name__} instead of TaskCreated"):
        apply(None, event)


def test_a_status_replaces_the_last_one() -> None:
    assert fold(StatusChanged(status=status(TaskState.WORKING))).status == status(TaskState.WORKING)


def test_the_message_of_the_old_status_moves_to_the_history() -> None:
    asked = StatusChanged(status=status(TaskState.INPUT_REQUIRED, "which?"))
    assert fold(asked).history == NEW.history
    after = fold(asked, StatusChanged(status=status(TaskState.WORKING)))
    assert after.history == (*NEW.history, message("which?", Role.AGENT))


def test_a_question_stands_before_its_answer_in_the_history() -> None:
    task = fold(
        StatusChanged(status=status(TaskState.INPUT_REQUIRED, "which?")),
        MessageAdded(message=message("that"), status=status(TaskState.SUBMITTED)),
    )
    assert [said.message_id for said in task.history] == ["hello", "which?", "that"]
    assert task.status.state is TaskState.SUBMITTED


def test_a_message_alone_leaves_the_status() -> None:
    task = fold(MessageAdded(message=message("more")))
    assert (task.status, task.history[-1]) == (NEW.status, message("more"))


def test_an_artifact_is_added() -> None:
    assert words(fold(chunk("x"), chunk("y", "b"))) == {"a": ["x"], "b": ["y"]}


def test_an_artifact_of_the_same_id_is_replaced_where_it_stands() -> None:
    task = fold(chunk("x", name="old"), chunk("y", "b"), chunk("z"))
    assert words(task) == {"a": ["z"], "b": ["y"]}
    assert [artifact.artifact_id for artifact in task.artifacts] == ["a", "b"]
    assert task.artifacts[0].name is None


def test_appended_text_continues_the_text_that_was_there() -> None:
    assert words(fold(chunk("x"), chunk("y", "b"), chunk("z", append=True))) == {"a": ["xz"], "b": ["y"]}


def more(*new: Part, append: bool = True) -> ArtifactAdded:
    return ArtifactAdded(artifact=Artifact(artifact_id="a", parts=new), append=append)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (Part(text="x", media_type="text/plain"), Part(text="y", media_type="text/html")),
        (Part(text="x"), Part(text="y", media_type="text/plain")),
        (Part(text="x"), Part(text="y", metadata={"a": 1})),
        (Part(text="x", filename="a.txt"), Part(text="y", filename="b.txt")),
        (Part(text="x"), Part(data="y")),
        (Part(data="x"), Part(text="y")),
        (Part(raw=b"x"), Part(raw=b"y")),
        (Part(url="x"), Part(url="y")),
    ],
)
def test_an_appended_part_of_another_kind_stays_a_part_of_its_own(old: Part, new: Part) -> None:
    assert fold(more(old, append=False), more(new)).artifacts[0].parts == (old, new)


def test_texts_of_the_same_metadata_and_name_are_one_part() -> None:
    kind: dict[str, Any] = {"media_type": "text/csv", "filename": "a.csv", "metadata": {"a": [1]}}
    task = fold(more(Part(text="x,", **kind), append=False), more(Part(text="y", **kind)))
    assert task.artifacts[0].parts == (Part(text="x,y", **kind),)


def test_texts_that_came_side_by_side_stay_apart() -> None:
    first, last = (Part(text="1"), Part(text="2")), (Part(text="3"), Part(text="4"))
    assert words(fold(more(*first, append=False), more(*last))) == {"a": ["1", "23", "4"]}


def test_appending_keeps_the_name_and_merges_metadata() -> None:
    first = chunk("x", name="n", description="d", metadata={"a": 1, "b": 1})
    artifact = fold(first, chunk("y", append=True, name="other", metadata={"b": 2})).artifacts[0]
    assert (artifact.name, artifact.description, artifact.metadata) == ("n", "d", {"a": 1, "b": 2})


def test_appending_to_an_unknown_id_creates_it() -> None:
    assert words(fold(chunk("x", append=True))) == {"a": ["x"]}


def test_status_of_tells_what_an_event_sets() -> None:
    working = status(TaskState.WORKING)
    assert status_of(TaskCreated(task=NEW)) == NEW.status
    assert status_of(StatusChanged(status=working)) == working
    assert status_of(MessageAdded(message=message("x"), status=working)) == working
    assert status_of(MessageAdded(message=message("x"))) is None
    assert status_of(chunk("x")) is None


# ------------------------------------------------ any log, as values and as rows

some_text = st.text(max_size=8)
names = st.none() | st.text(min_size=1, max_size=8)
json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | some_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(some_text, inner, max_size=3),
    max_leaves=8,
)
metadata = st.none() | st.dictionaries(some_text, json, max_size=2)
uris = st.lists(st.sampled_from(["https://e.example/1", "https://e.example/2"]), max_size=2).map(tuple)
contents = st.one_of(
    st.fixed_dictionaries({"text": some_text}),
    st.fixed_dictionaries({"raw": st.binary(max_size=8)}),
    st.fixed_dictionaries({"url": some_text}),
    st.fixed_dictionaries({"data": json}),
)


@st.composite
def parts(draw: st.DrawFn) -> Part:
    content = {"data": UNSET} | draw(contents)
    return Part(**content, filename=draw(names), media_type=draw(names), metadata=draw(metadata))


some_parts = st.lists(parts(), min_size=1, max_size=3).map(tuple)
ids = st.sampled_from(["a", "b", "c"])
times = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001
    lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)
)
messages = st.builds(
    Message,
    message_id=ids,
    role=st.sampled_from(Role),
    parts=some_parts,
    context_id=names,
    task_id=names,
    metadata=metadata,
    extensions=uris,
    reference_task_ids=uris,
)
statuses = st.builds(Status, state=st.sampled_from(TaskState), timestamp=times, message=st.none() | messages)
artifacts = st.builds(
    Artifact,
    artifact_id=ids,
    parts=some_parts,
    name=names,
    description=names,
    metadata=metadata,
    extensions=uris,
)
tasks = st.builds(
    Task,
    id=st.just("t"),
    context_id=st.just("c"),
    status=statuses,
    artifacts=st.lists(artifacts, max_size=2).map(tuple),
    history=st.lists(messages, max_size=2).map(tuple),
    metadata=metadata,
)
events = st.one_of(
    st.builds(StatusChanged, status=statuses),
    st.builds(ArtifactAdded, artifact=artifacts, append=st.booleans(), last_chunk=st.booleans()),
    st.builds(MessageAdded, message=messages, status=st.none() | statuses),
)


@settings(deadline=None)
@given(tasks, st.lists(events, max_size=6))
def test_folding_the_stored_log_gives_what_folding_the_values_gives(task: Task, after: list[Event]) -> None:
    log: list[Event] = [TaskCreated(task=task), *after]
    rows = [event_document(event, task_id="t", context_id="c", seq=seq) for seq, event in enumerate(log, 1)]
    assert [event_of(row) for row in rows] == log
    of_values: Task | None = None
    of_rows: Task | None = None
    for event, row in zip(log, rows, strict=True):
        of_values, of_rows = apply(of_values, event), apply(of_rows, event_of(row))
        assert of_rows == of_values
        assert row.state == (None if (told := status_of(event)) is None else told.state.value)
    assert of_values is not None
    assert fold_all(None, log) == of_values
    assert task_of(document(of_values, len(log))) == of_values


# ------------------------------------------------ a text in chunks

texts = st.text(st.sampled_from(" \n\t\u2028\u0085abc") | st.characters(codec="utf-8"), max_size=40)


@settings(deadline=None)
@given(texts, st.data())
def test_a_text_is_the_same_one_part_however_it_was_cut_and_grouped(text: str, data: st.DataObject) -> None:
    def cut(most: int) -> list[int]:
        return sorted(data.draw(st.lists(st.integers(0, most), max_size=8)))

    ends = [*cut(len(text)), len(text)]
    chunks: list[Event] = [
        chunk(text[start:end], append=place > 0) for place, (start, end) in enumerate(pairwise([0, *ends]))
    ]
    log: list[Event] = [TaskCreated(task=NEW), *_grouped(chunks, data.draw(st.sets(st.integers(1, len(chunks)))))]
    whole = fold_all(None, log)
    assert words(whole) == {"a": [text]}
    # From each snapshot, the events behind it fold to the same task.
    for place in cut(len(log) - 1):
        stored = task_of(document(fold_all(None, log[: place + 1]), place + 1))
        assert fold_all(stored, log[place + 1 :]) == whole


def _grouped(chunks: list[Event], apart: set[int]) -> list[Event]:
    """Return the chunks as a run writes them: neighbours are one event, but for those that were written before."""
    log = chunks[:1]
    for place, event in enumerate(chunks[1:], 1):
        together = None if place in apart else merge(log[-1], event)
        log[-1:] = [together] if together else [log[-1], event]
    return log
