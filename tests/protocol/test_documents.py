"""Documents as bytes: large texts bit by bit, so that other threads get the interpreter in between."""

from typing import Any

import orjson
import pytest

from a2a.dialects.json.json_1_0 import document, task_of
from a2a.documents import PIECE, TaskDocument, encode_pieces
from a2a.files import SCHEME


class Text(str):
    """A text that remembers in what pieces it was taken."""

    __slots__ = ("sizes",)

    def __new__(cls, value: str) -> "Text":
        text = super().__new__(cls, value)
        text.sizes = []
        return text

    def __getitem__(self, key: Any) -> str:
        found = super().__getitem__(key)
        self.sizes.append(len(found))
        return found


@pytest.mark.parametrize("size", [PIECE - 1, PIECE, PIECE + 1, 3 * PIECE + 7])
def test_texts_of_any_size_are_encoded_whole(size: int) -> None:
    text = "\N{SNOWMAN}" * size
    assert bytes(encode_pieces(["[", text, "]"])) == f"[{text}]".encode()


def test_a_large_text_is_encoded_bit_by_bit() -> None:
    text = Text("x" * (5 * PIECE))
    assert bytes(encode_pieces([text])) == b"x" * (5 * PIECE)
    searched, taken = [PIECE + len(SCHEME) - 1] * 4 + [PIECE], [PIECE] * 5
    assert text.sizes == searched + taken


@pytest.mark.parametrize("messages", [0, 1, 3])
def test_a_document_lists_its_messages(messages: int) -> None:
    said = [{"messageId": f"m{n}", "role": "ROLE_USER", "parts": [{"text": "x"}]} for n in range(messages)]
    status = '{"state":"TASK_STATE_WORKING","timestamp":"2026-01-01T00:00:00Z"}'
    stored = TaskDocument(
        id="t",
        context_id="c",
        seq=1,
        state="TASK_STATE_WORKING",
        status=status,
        artifacts="[]",
        history=orjson.dumps(said).decode(),
    )
    again = document(task_of(stored), 1)
    assert (again.artifacts, orjson.loads(again.history or "")) == ("[]", said)
