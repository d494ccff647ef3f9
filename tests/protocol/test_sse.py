"""Server-sent events: the bytes of a frame, and where a client left off."""

import pytest

from a2a.sse import DRAINING, PING, RETRY, frame, last_seen


def test_a_frame_is_one_data_line_and_a_blank_one() -> None:
    assert frame(b'{"a":1}') == b'data: {"a":1}\n\n'


def test_a_frame_with_a_place_in_the_log_says_it_first() -> None:
    assert frame(b"{}", 7) == b"id: 7\ndata: {}\n\n"


def test_zero_is_a_place() -> None:
    assert frame(b"{}", 0).startswith(b"id: 0\n")


@pytest.mark.parametrize("comment", [PING, DRAINING])
def test_a_comment_is_no_event(comment: bytes) -> None:
    assert comment.startswith(b":")
    assert comment.endswith(b"\n\n")
    assert comment.count(b"\n") == 2


def test_the_client_is_told_when_to_come_back() -> None:
    assert RETRY == b"retry: 2000\n\n"


@pytest.mark.parametrize(("header", "seq"), [("0", 0), ("7", 7), ("007", 7), ("9" * 18, 10**18 - 1)])
def test_a_place_is_read_back(header: str, seq: int) -> None:
    assert last_seen(header) == seq


@pytest.mark.parametrize("header", [None, "", " 7", "-1", "+1", "1.0", "1e3", "abc", "²", "٣", "9" * 19, "1\n"])
def test_what_is_no_place_of_ours_is_none(header: str | None) -> None:
    assert last_seen(header) is None
