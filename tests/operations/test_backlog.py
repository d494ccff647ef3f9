"""Exchanges that the database does not take: kept, bounded, written when it is back."""

from typing import Any

import pytest
from django.db import DataError, OperationalError

from tasks_app import clock
from tasks_app.database.rows import BodyRow, ExchangeRow
from tasks_app.exchanges import backlog, recording
from tasks_app.exchanges.backlog import Backlog, Halves
from tasks_app.exchanges.recording import Record, Recorder, record_many
from tasks_app.ids import uuid7
from tasks_app.models import Exchange, ExchangeBody

pytestmark = [pytest.mark.django_db, pytest.mark.storage]


def pair(outcome: str = "error", request: str = "{}") -> Halves:
    row = ExchangeRow(
        id=uuid7(),
        request_id="r",
        rpc_id="1",
        rpc_id_type="number",
        door="http",
        trace="",
        created_at=clock.now(),
        request_bytes=2,
    )
    row.outcome = outcome
    return Halves(row, BodyRow(exchange_id=row.id, request=request))


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Recorder:
    """Put a recorder of the test's own in place."""
    own = Recorder()
    monkeypatch.setattr(recording, "recorder", own)
    return own


def away(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    """The database refuses everything, until the patch is undone."""

    def refuse(*_: Any) -> None:
        raise error

    monkeypatch.setattr(recording, "write", refuse)


def test_exchanges_that_the_database_missed_are_written_when_it_is_back(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, changed = pair("stream"), pair("")
    record_many([Record([changed], [])])
    changed[0].outcome = "result"
    with monkeypatch.context() as patch:
        away(patch, OperationalError("the connection is lost"))
        record_many([Record([stored], [changed], [pair()]), Record([pair()], [])])
        assert len(recorder.backlog) == 4
        (sentence,) = recorder.troubles()
        assert "4 calls wait to be recorded" in sentence
        recorder.offer()
        assert len(recorder.backlog) == 4
    recorder.offer()
    assert recorder.troubles() == []
    assert sorted(Exchange.objects.values_list("outcome", flat=True)) == ["error", "error", "result", "stream"]
    assert ExchangeBody.objects.count() == 4
    assert recorder.losses == 0


def test_an_exchange_stored_before_its_connection_broke_is_there_once(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = pair()
    record_many([Record([both], [])])
    with monkeypatch.context() as patch:
        away(patch, OperationalError("nobody knows whether it was committed"))
        record_many([Record([both], [])])
    recorder.offer()
    assert Exchange.objects.get().outcome == "error"


def test_exchanges_that_the_database_will_never_take_are_counted(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    away(monkeypatch, DataError("too long"))
    record_many([Record([pair(), pair()], [])])
    assert (recorder.losses, len(recorder.backlog)) == (2, 0)


def test_one_that_is_always_refused_holds_up_no_other(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    bad, good = pair(), [pair() for _ in range(9)]
    write = recording.write

    def choosy(new: Any, endings: Any, doubtful: Any) -> None:
        if any(row is bad[0] for row, *_ in doubtful):
            raise OperationalError("not this one")
        write(new, endings, doubtful)

    recorder.backlog.keep([bad, *good])
    monkeypatch.setattr(recording, "write", choosy)
    for _ in range(2 * backlog.AT_ONCE.bit_length()):
        recorder.offer()
    assert Exchange.objects.count() == 9
    assert [row.id for row, *_ in recorder.backlog.pairs] == [bad[0].id]


def test_the_backlog_is_bounded_in_number_and_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog, "MOST", 3)
    queue, pairs = Backlog(), [pair() for _ in range(5)]
    queue.keep(pairs)
    assert (list(queue.pairs), queue.losses) == (pairs[2:], 2)
    monkeypatch.setattr(backlog, "MOST_BYTES", 2000 + backlog.ROW_SIZE)
    queue.keep([pair(request="x" * 2000)])
    assert (len(queue), queue.losses) == (1, 5)
    assert queue.bytes == 2000 + backlog.ROW_SIZE
    queue.take()
    assert (len(queue), queue.bytes) == (0, 0)
    queue.keep([pair(request="x" * 499 + "\N{GRINNING FACE}")])
    assert queue.bytes == 4 * 500 + backlog.ROW_SIZE, "each character takes four bytes"


def test_all_of_the_backlog_is_written_before_a_process_ends(recorder: Recorder) -> None:
    pairs = [pair() for _ in range(2 * backlog.AT_ONCE + 1)]
    recorder.backlog.keep(pairs)
    recorder.offer()
    assert recorder.drain(60)
    assert Exchange.objects.count() == len(pairs)
    assert (len(recorder.backlog), recorder.behind) == (0, 0)


def test_exchanges_that_no_lane_takes_go_back_to_the_backlog(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(record: Record, future: Any) -> None:
        future.set_exception(OperationalError("the connection is closed"))

    with monkeypatch.context() as patch:
        patch.setattr(recording.bridge, "put", broken)
        recorder.backlog.keep([pair()])
        recorder.offer()
    assert (len(recorder.backlog), recorder.behind) == (1, 0)
    assert not recorder.drain(0), "it would be lost"
    recorder.offer()
    assert recorder.drain(0)


def test_a_lane_that_hangs_collects_no_more_than_the_backlog_holds(
    recorder: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting:
        """An exchange that is closed."""

        is_doubtful = is_written = False

        def __init__(self) -> None:
            self.row, self.body, _ = pair()

        def last_entry(self) -> None:
            return None

    recorder.behind = recording.MOST_BEHIND + 1  # The lane has written none of it yet.
    recorder.queue = [Waiting()]  # type: ignore[list-item]
    recorder.flush()
    assert len(recorder.backlog) == 1
    assert not Exchange.objects.exists()
