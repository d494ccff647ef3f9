"""A history that is put together from stored texts is what the fold of the same events gives."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from a2a.dialects.json.history import History
from a2a.dialects.json.json_1_0 import document, event_document
from a2a.documents import PIECE, SMALL, Pieces, TaskDocument, split_text
from a2a.events import Event, MessageAdded, StatusChanged, TaskCreated, fold
from a2a.files import SCHEME, reference
from a2a.states import TaskState
from a2a.types import Message, Part, Role
from tests.protocol.events import NEW, chunk, message, status

LONG = "\N{SNOWMAN}\"\\ ,'" * PIECE
FILE = Part(url=reference("20260101", "0" * 32, "a.txt"))
said = st.sampled_from(["", "more", '","status":{"state":"x"},"', "\\", LONG]).map(message)
statuses = st.builds(status, st.sampled_from([TaskState.WORKING, TaskState.INPUT_REQUIRED]), st.none() | st.just("q?"))
logs = st.lists(
    st.builds(MessageAdded, message=said, status=st.none() | statuses)
    | st.builds(StatusChanged, status=statuses)
    | st.just(chunk("x", append=True)),
    max_size=6,
)


def folded(events: list[Event]) -> TaskDocument:
    return document(fold(None, events), len(events))


@given(logs, st.integers(0, 7))
def test_a_spliced_history_is_the_folded_one_from_wherever_it_begins(log: list[Event], start: int) -> None:
    events = [TaskCreated(task=NEW), *log]
    beginning = folded(events[:start]) if start else None
    history = History(beginning.history or "", beginning.status) if beginning else History()
    for seq, event in enumerate(events[start:], start + 1):
        history.take(event_document(event, task_id="t", context_id="c", seq=seq))
    assert bytes(history.text()).decode() == folded(events).history


def test_a_long_message_goes_in_pieces_and_one_that_refers_to_files_whole() -> None:
    plain, referring = (
        Message(message_id="m", role=Role.USER, parts=(Part(text="x" * 3 * PIECE), *more)) for more in ((), (FILE,))
    )
    for said, most in ((plain, PIECE + SMALL), (referring, 4 * PIECE)):
        history = History()
        history.take(event_document(MessageAdded(message=said), task_id="t", context_id="c", seq=2))
        parts = history.text().parts
        assert max(map(len, parts)) <= most
        assert [b"taskdesk-file" in part for part in parts].count(True) == len(said.parts) - 1
    assert len(parts) == 1


def test_a_reference_is_found_wherever_a_long_text_would_be_cut() -> None:
    for place in range(PIECE - len(SCHEME) - 1, PIECE + 2):
        text = "x" * place + SCHEME + "x" * PIECE
        assert split_text(text) == [text.encode()], place


@pytest.mark.parametrize("length", [None, 0, 1, 2, 9])
def test_a_document_with_a_long_history_is_the_same_json(length: int | None) -> None:
    whole = folded([TaskCreated(task=NEW), MessageAdded(message=message(LONG)), MessageAdded(message=message("end"))])
    history = History()
    history.parts = [(whole.history or "")[1:-1].encode()]
    long = TaskDocument(
        id="t", context_id="c", seq=3, state=whole.state, status=whole.status, long_history=history.text()
    )
    whole = TaskDocument(id="t", context_id="c", seq=3, state=whole.state, status=whole.status, history=whole.history)
    assert orjson.loads(bytes(long.json(length))) == orjson.loads(bytes(whole.json(length)))


def test_pieces_are_one_text_and_small_ones_join_their_neighbours() -> None:
    parts = [b"[", b"x" * SMALL, b"y" * (SMALL + 1), b",", b"", b"z" * PIECE, b"]"]
    pieces = Pieces(parts)
    assert bytes(pieces) == b"".join(parts)
    assert len(pieces) == len(b"".join(parts))
    assert [len(part) for part in pieces.parts] == [2 * SMALL + 2, PIECE + 2]
