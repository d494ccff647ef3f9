"""Answers of receivers: their meaning, and the time of the next try."""

from datetime import UTC, datetime, timedelta

import pytest

from tasks_app.webhooks.schedule import GAPS, LONGEST, Decision, TryResult, decide, next_try

NOW = datetime(2026, 3, 2, 9, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ((200, 201, 202, 204, 299), Decision.DELIVERED),
        ((408, 429, 500, 502, 503, 504, 599), Decision.RETRY),
        ((410,), Decision.DISABLE),
        ((300, 301, 302, 303, 307, 308, 304), Decision.GIVE_UP),
        ((400, 401, 403, 404, 405, 413, 415, 422, 451), Decision.GIVE_UP),
    ],
)
def test_every_status_has_its_meaning(statuses: tuple[int, ...], expected: Decision) -> None:
    assert {decide(TryResult(status=status)) for status in statuses} == {expected}


def test_no_answer_is_for_later_unless_it_is_hopeless() -> None:
    assert decide(TryResult(error="x")) is Decision.RETRY
    assert decide(TryResult(error="x", hopeless=True)) is Decision.GIVE_UP


@pytest.mark.requirement("ACP-23")
def test_gaps_grow_and_are_spread() -> None:
    for tries, gap in enumerate(GAPS, 1):
        waits = [next_try(TryResult(status=500), tries, NOW, chance) - NOW for chance in (0.0, 0.5, 1.0)]
        assert waits == [timedelta(seconds=gap * factor) for factor in (0.8, 1.0, 1.2)]
    assert next_try(TryResult(status=500), 99, NOW, 0.5) - NOW == timedelta(seconds=GAPS[-1])
    assert sorted(GAPS) == list(GAPS)


def test_a_receiver_is_called_when_it_says_but_a_day_later_at_most() -> None:
    assert next_try(TryResult(status=429, retry_after="900"), 1, NOW, 0.5) - NOW == timedelta(seconds=900)
    assert next_try(TryResult(status=503, retry_after="1"), 3, NOW, 0.5) - NOW == timedelta(seconds=GAPS[2])
    assert next_try(TryResult(status=429, retry_after="99999999"), 1, NOW, 0.5) - NOW == LONGEST
