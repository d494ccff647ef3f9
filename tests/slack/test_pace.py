"""The pace of calls to Slack: one in a time for each channel, and none during a pause that Slack has asked for."""

from typing import Any

import pytest

from tasks_app.slack import pace
from tasks_app.slack.pace import Pace


@pytest.fixture(autouse=True)
def _seconds(settings: Any) -> None:
    settings.A2A_SLACK_EDIT_SECONDS = 1.0


def test_calls_of_a_channel_come_one_after_another() -> None:
    here = Pace()
    assert [here.reserve(("C1",), 10.0) for _ in range(3)] == [0.0, 1.0, 2.0]
    assert here.reserve(("C2",), 10.0) == 0.0, "another channel waits for none of them"


def test_an_edit_waits_for_its_channel_and_for_its_workspace() -> None:
    here = Pace()
    here.reserve(("C1", "edits"), 10.0)
    assert here.reserve(("C2", "edits"), 10.0) == 1.0
    assert here.reserve(("C2",), 10.0) == 2.0


def test_a_pause_puts_the_next_call_off() -> None:
    here = Pace()
    here.hold(("C1",), 30.0, 10.0)
    assert here.reserve(("C1",), 15.0) == 25.0
    assert here.reserve(("C1",), 100.0) == 0.0


def test_times_that_have_come_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "MOST", 3)
    here = Pace()
    for number in range(10):
        here.reserve((number,), number * 100.0)
    assert len(here.times) <= 5
