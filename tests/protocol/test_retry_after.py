"""The Retry-After header, whatever a server puts into it."""

from datetime import UTC, datetime, timedelta

import pytest

from a2a.retry_after import MOST, read_retry_after

NOW = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        (" 7 ", 7),
        ("0", 0),
        ("9" * 30, MOST),
        ("Mon, 02 Mar 2026 09:25:00 GMT", 600),
        ("Mon, 02 Mar 2026 09:25:00 -0000", 600),
        ("Mon, 02 Mar 2026 09:00:00 GMT", 0),
        ("Monday, 02-Mar-26 09:25:00 GMT", 600),
    ],
)
def test_a_server_says_when_in_seconds_or_with_a_date(header: str, seconds: float) -> None:
    assert read_retry_after(header, NOW) == timedelta(seconds=seconds)


@pytest.mark.parametrize("header", ["", "soon", "-5", "1.5", "٣", "Mon, 99 Mar 2026 99:99:99 GMT", "\0"])
def test_a_header_without_either_asks_for_no_wait(header: str) -> None:
    assert read_retry_after(header, NOW) is None
