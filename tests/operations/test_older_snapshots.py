"""A task that an earlier version stored, in which appended texts are parts of their own, is read like any other."""

from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from a2a.dialects.json.json_1_0 import document, task_of
from a2a.events import ArtifactAdded
from a2a.requests import GetTask, ListTasks
from a2a.states import TaskState
from a2a.types import Artifact, Part, Task
from tasks_app.doctor.logs import examine_task
from tasks_app.event_log import (
    ReadAsOf,
    ReadTask,
    Refresh,
    append_many,
    as_of,
    claim,
    create_many,
    read_as_of,
    read_many,
)
from tasks_app.event_log.bodies import MakeBody, body_of
from tasks_app.event_log.conversation import conversation_of
from tasks_app.models import Task as Row
from tests.conftest import Person
from tests.operations.asking import ask, shown
from tests.operations.rows import addition, chunk, creation, status, wish

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
WORDS = ["Once", " upon", "\na", " \u2028", "time"]
STORY = "".join(WORDS)


@pytest.fixture(autouse=True)
def _nothing_kept() -> Any:
    as_of.recent.clear()
    yield
    as_of.recent.clear()


def older(owner: Person, *, ended: bool = True, key: str = "k") -> str:
    """A task as the version before left it: with a snapshot, of its end or of the middle, that has a part a chunk."""
    item = creation(owner, key)
    create_many([item])
    assert item.task
    claim(wish())
    for place, word in enumerate(WORDS):
        append_many([addition(item.task.id, chunk(word, append=place > 0))])
    apart = (Part(text="a list"), Part(text="of two"))
    append_many([addition(item.task.id, ArtifactAdded(artifact=Artifact(artifact_id="b", parts=apart)))])
    stored = _stored(item.task.id, [Part(text=word) for word in WORDS])
    if ended:
        append_many([addition(item.task.id, status(TaskState.COMPLETED, "done"))])
        stored = _stored(item.task.id, [Part(text=word) for word in WORDS])
    Row.objects.filter(pk=item.task.id).update(**stored)
    return item.task.id


def _stored(task_id: str, parts: list[Part]) -> dict[str, Any]:
    (read,) = read_many([ReadTask(task_id=task_id, sight=None)])
    assert read
    now = task_of(read.document)
    first, *rest = now.artifacts
    before = document(replace(now, artifacts=(replace(first, parts=tuple(parts)), *rest)), read.document.seq)
    return {
        "snapshot_seq": before.seq,
        "joined_seq": None,
        "snapshot_status": before.status,
        "artifacts": before.artifacts,
        "history": before.history,
    }


def texts(task: Task) -> list[list[str | None]]:
    return [[part.text for part in artifact.parts] for artifact in task.artifacts]


WHOLE = [[STORY], ["a list", "of two"]]


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "working"])
@pytest.mark.parametrize("history", [None, 0], ids=["whole", "without-history"])
def test_it_is_read_with_one_part(owner: Person, ended: bool, history: int | None) -> None:
    task_id = older(owner, ended=ended)
    assert len(orjson.loads(Row.objects.get().artifacts)[0]["parts"]) == len(WORDS)
    assert texts(shown(ask(owner, GetTask(id=task_id, history_length=history)))) == WHOLE


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "working"])
def test_it_is_listed_with_one_part(owner: Person, ended: bool) -> None:
    older(owner, ended=ended)
    for state in (None, TaskState.COMPLETED if ended else TaskState.WORKING):
        (found,) = ask(owner, ListTasks(include_artifacts=True, state=state)).tasks
        assert texts(task_of(found)) == WHOLE
    (found,) = ask(owner, ListTasks()).tasks
    assert found.artifacts is None


@pytest.mark.parametrize("ended", [True, False], ids=["ended", "working"])
def test_it_is_resumed_with_one_part(owner: Person, ended: bool) -> None:
    task_id = older(owner, ended=ended)
    last = Row.objects.get().last_seq
    for seq, expected in ((last, WHOLE), (4, [["Once upon"]])):
        found = read_as_of(ReadAsOf(task_id=task_id, context_id="c", seq=seq))
        assert found
        assert texts(task_of(found)) == expected
        as_of.recent.clear()


def test_it_is_sent_to_webhooks_with_one_part(owner: Person) -> None:
    task_id = older(owner)
    body = body_of(MakeBody(task_id=task_id, seq=Row.objects.get().last_seq, language="a2a-0.3"))
    assert body
    assert orjson.loads(body)["artifacts"][0]["parts"] == [{"kind": "text", "text": STORY}]


def test_it_is_remembered_with_one_part(owner: Person) -> None:
    older(owner)
    said = conversation_of(owner.caller.owner_id, "c")
    assert [message.text for message in said if message.message_id.endswith("/a")] == [STORY]


def test_it_is_stored_with_one_part_by_its_next_snapshot(owner: Person) -> None:
    task_id = older(owner, ended=False)
    append_many([addition(task_id, status(TaskState.COMPLETED))])
    Refresh.do_many([Refresh(task_id=task_id)])
    row = Row.objects.get()
    assert (row.snapshot_seq, row.joined_seq) == (row.last_seq, row.last_seq)
    assert orjson.loads(row.artifacts)[0]["parts"] == [{"text": STORY}]


def test_its_log_folds_to_what_is_read(owner: Person) -> None:
    older(owner)
    assert list(examine_task(Row.objects.get())) == []


def test_a_snapshot_of_an_older_version_over_one_of_this_is_found_out(owner: Person) -> None:
    task_id = older(owner)
    Row.objects.update(joined_seq=2)
    assert texts(shown(ask(owner, GetTask(id=task_id)))) == WHOLE
