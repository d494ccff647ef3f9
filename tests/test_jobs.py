"""The job that wakes a worker."""

import pytest
from django.db import OperationalError

from tasks_app.jobs import wake
from tasks_app.runner.runner import runner


def test_a_look_for_work_while_the_database_is_away_is_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def away() -> None:
        raise OperationalError("the server closed\nthe connection")

    monkeypatch.setattr(runner, "claim_all", away)
    assert wake.apply().successful()
    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    words = "looking for work failed; the next sweep offers again: the server closed the connection"
    assert (record.getMessage(), record.exc_info) == (words, None)
