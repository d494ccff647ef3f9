"""Large parts of messages and artifacts are stored once and referred to."""

from typing import Any

import pytest
from django.core.management import call_command

from a2a.errors import IdempotencyConflict
from a2a.files import MARK, SCHEME, id_of, is_stored
from a2a.types import Part
from tasks_app import event_log
from tasks_app.admin.timeline import build_lines
from tasks_app.files.storage import load
from tasks_app.models import DirectReply, File
from tasks_app.models import Event as EventRow
from tasks_app.models import Task as TaskRow
from tests.conftest import Person
from tests.operations.asking import data, message, send, sent, text_of
from tests.operations.files.stored import BIG, PDF, only, rows, stored_paths

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("service")]


def test_a_large_part_is_stored_once_and_referred_to_everywhere(owner: Person) -> None:
    task = sent(owner, message(parts=(PDF,)), "echo")
    said, made = task.history[0].parts[0], only(task)
    assert said == made
    assert (said.raw, said.filename, said.media_type) == (None, "report.pdf", "application/pdf")
    assert said.url
    assert load(said.url) == BIG
    row = File.objects.get()
    assert (row.id, row.holder, row.name, row.media_type) == (id_of(said.url), task.id, "report.pdf", "application/pdf")
    assert row.size == len(BIG)
    assert stored_paths() == rows()
    sizes = [len(event.payload) for event in EventRow.objects.filter(task_id=task.id)]
    assert max(sizes) < 1_000


def test_a_small_part_stays_where_it_is(owner: Person, settings: Any) -> None:
    exactly = bytes(settings.A2A_INLINE_BYTES)
    assert only(sent(owner, message(parts=(Part(raw=exactly),)), "echo")).raw == exactly
    assert is_stored(only(sent(owner, message(parts=(Part(raw=exactly + b"1"),)), "echo")))
    assert stored_paths() == rows()
    assert len(rows()) == 1


def test_an_agent_reads_what_it_was_sent_and_gives_what_it_makes(owner: Person) -> None:
    parts = (PDF, Part(raw=b"small", filename="s"), Part(data={"sizes": [50_000], "name": "x.zip"}))
    task = sent(owner, message(parts=parts), "files")
    assert [part.text for said in task.history for part in said.parts if part.text] == [
        f"report.pdf: {len(BIG)} bytes, {sum(BIG) % 251}",
        f"s: 5 bytes, {sum(b'small') % 251}",
    ]
    made = only(task)
    assert made.url
    assert (made.filename, load(made.url)) == ("x.zip", bytes(50_000))
    assert {row.holder for row in File.objects.all()} == {task.id}
    assert stored_paths() == rows()


def test_a_media_type_that_is_too_long_for_a_row_is_that_of_any_bytes(owner: Person) -> None:
    kind = "a" * 100 + "/" + "b" * 100 + "; " + "c" * 20 + "=" + "d" * 100
    parts = (Part(raw=BIG, filename="x", media_type=kind), Part(data={"sizes": [50_000], "kind": kind}))
    task = sent(owner, message(parts=parts), "files")
    assert task.status.state == "completed"
    assert [row.media_type for row in File.objects.all()] == ["application/octet-stream"] * 2
    assert only(task).media_type == kind


def test_an_agent_in_a_thread_reads_too(owner: Person) -> None:
    assert text_of(sent(owner, message(parts=(PDF, Part(raw=b"1"))), "files-in-a-thread")) == f"{len(BIG)} bytes1 bytes"


def test_a_quick_agent_reads_and_makes_files_before_anything_is_stored(owner: Person) -> None:
    made = only(sent(owner, message(parts=(PDF,)), "quick-files"))
    assert made.url
    assert load(made.url) == BIG
    assert len(rows()) == 2
    assert stored_paths() == rows()


def test_the_files_of_a_direct_reply_belong_to_the_reply(owner: Person) -> None:
    said = message(parts=(Part(text="reply"), PDF), context_id="c")
    reply = send(owner, said, "quick-files").message
    assert reply
    assert is_stored(reply.parts[0])
    row = DirectReply.objects.get()
    assert {file.holder for file in File.objects.all()} == {row.id}
    assert SCHEME in row.message
    assert SCHEME in row.reply
    assert send(owner, said, "quick-files").message == reply
    assert stored_paths() == rows()


def test_the_next_message_of_a_task_brings_files_too(owner: Person) -> None:
    task = sent(owner, "one", "asks")
    done = sent(owner, message(parts=(Part(text="two"), Part(data=BIG.hex()))), "echo")
    assert done.artifacts
    with pytest.raises(Exception, match="content type"):
        sent(owner, message(parts=(PDF,), task_id=task.id))
    task = sent(owner, data({"sizes": []}), "asks-for-files")
    done = sent(owner, message(parts=(PDF,), task_id=task.id))
    assert text_of(done) == f"{len(BIG)} bytes"
    assert {row.holder for row in File.objects.all()} == {task.id}
    assert stored_paths() == rows()


def test_the_same_message_again_stores_nothing_and_another_file_is_a_conflict(owner: Person) -> None:
    said = message(parts=(PDF,))
    task = sent(owner, said, "echo")
    before = stored_paths()
    assert sent(owner, said, "echo") == task
    other = message(message_id=said.message_id, parts=(Part(raw=BIG[::-1], filename=PDF.filename),))
    with pytest.raises(IdempotencyConflict):
        send(owner, other, "echo")
    task = sent(owner, "go", "asks-for-files")
    follow_up = message(parts=(PDF,), task_id=task.id)
    done = sent(owner, follow_up)
    assert sent(owner, follow_up) == done
    assert len(stored_paths()) == len(before) + 1
    assert stored_paths() == rows()


def test_two_that_send_it_at_once_leave_one_file(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    said = message(parts=(PDF,))
    task = sent(owner, said, "echo")
    # As if the first had been committed just after the second looked.
    found = event_log.find_key_many
    blind = iter([lambda items: [None for _ in items]])

    def look(items: Any) -> Any:
        return next(blind, found)(items)

    monkeypatch.setattr(event_log.FindKey, "do_many", look)
    assert sent(owner, said, "echo") == task
    assert stored_paths() == rows()
    assert len(rows()) == 1


def test_an_operator_sees_links_and_no_reference(owner: Person, capsys: pytest.CaptureFixture[str]) -> None:
    task = sent(owner, message(parts=(PDF,)), "echo")
    call_command("tasks", "show", task.id)
    printed = capsys.readouterr().out
    (newest, *_), _ = build_lines(TaskRow.objects.get(), exchanges=False)
    for told in (printed, newest["payload"]):
        assert "/files/" in told
        assert "signature=" in told
        assert MARK.decode() not in told
