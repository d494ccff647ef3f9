"""Server-sent events: the bytes of a frame, and where a client left off."""

import orjson
import pytest
from httpx_sse import ServerSentEvent
from httpx_sse._decoders import SSEDecoder

from a2a.errors import InvalidRequest
from a2a.sse import DRAINING, PING, RETRY, frame, last_seen


def test_a_frame_is_one_data_line_and_a_blank_one() -> None:
    assert frame(b'{"a":1}') == b'data: {"a":1}\n\n'


def test_a_frame_with_a_place_in_the_log_says_it_first() -> None:
    assert frame(b"{}", 7) == b"id: 7\ndata: {}\n\n"


SEPARATORS = "a\u2028b\u2029c\u0085d"


def test_no_line_ends_within_a_frame_by_any_rule_and_the_text_is_the_same() -> None:
    data = orjson.dumps({SEPARATORS: [SEPARATORS, "\\\u2028", "é\u2030 \v\f\x1c\x1d\x1e"]})
    first, *rest = frame(data, 7).decode().splitlines()
    assert (first, rest[1:]) == ("id: 7", [""])
    assert orjson.loads(rest[0].removeprefix("data: ")) == orjson.loads(data)


def test_other_text_is_sent_as_it_is() -> None:
    data = orjson.dumps({"text": "“Grüße”, 株式会社 😀 \u200b"})
    assert frame(data) == b"data: " + data + b"\n\n"


def test_the_sequence_number_zero_is_sent() -> None:
    assert frame(b"{}", 0).startswith(b"id: 0\n")


@pytest.mark.parametrize("comment", [PING, DRAINING])
def test_a_comment_is_no_event_to_a_reader_that_keeps_the_last_id(comment: bytes) -> None:
    # Some readers take a comment and a blank line after an id for an event without data.
    events = read(frame(b"{}", 7) + comment + frame(b"[]", 8))
    assert [(event.id, event.data) for event in events] == [("7", "{}"), ("8", "[]")]


def test_the_client_is_told_when_to_come_back_with_the_first_event() -> None:
    (event,) = read(RETRY + frame(b"{}", 1))
    assert (event.retry, event.id, event.data) == (2000, "1", "{}")


def read(stream: bytes) -> list[ServerSentEvent]:
    decoder = SSEDecoder()
    return [event for line in stream.decode().splitlines() if (event := decoder.decode(line))]


@pytest.mark.parametrize(("header", "seq"), [("0", 0), ("7", 7), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_a_place_is_read_back(header: str, seq: int) -> None:
    assert last_seen(header) == seq


@pytest.mark.parametrize("header", [None, ""])
def test_a_client_that_has_seen_no_event_has_no_place(header: str | None) -> None:
    assert last_seen(header) is None


@pytest.mark.parametrize("header", [" 7", "-1", "+1", "1.0", "1e3", "abc", "²", "٣", "9" * 19, "1\n"])
def test_a_last_event_id_that_is_not_ours_is_refused_by_its_name(header: str) -> None:
    with pytest.raises(InvalidRequest) as refusal:
        last_seen(header, "afterSequence")
    assert refusal.value.facts["detail"].startswith("afterSequence must be a whole number")
