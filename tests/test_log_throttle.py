"""Log lines that strangers can cause are short and few; our own faults are always logged in full."""

import logging
import sys
import time

import pytest

from tasks_app.process import log_throttle
from tasks_app.process.broker_losses import BrokerLosses
from tasks_app.process.log_throttle import BURST, MAX_CHARACTERS, LogThrottle


def line(name: str = "django.request", level: int = logging.WARNING, **more: object) -> logging.LogRecord:
    record = logging.LogRecord(name, level, "x.py", 1, "Not Found: %s", ("/" + "y" * 9_000,), None)
    record.__dict__.update(more)
    return record


def test_lines_of_refused_requests_are_few_short_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    now = time.monotonic()
    monkeypatch.setattr(log_throttle.time, "monotonic", lambda: now)
    filtering = LogThrottle()
    lines = [line(name) for name in ("django.request", "django.security.DisallowedHost", "uvicorn.error") * 50]
    passed = [record for record in lines if filtering.filter(record)]
    assert len(passed) == BURST
    assert all(len(record.getMessage()) == MAX_CHARACTERS for record in passed)
    now += 1
    assert filtering.filter(later := line())
    assert later.getMessage().endswith(" (100 such lines were left out before this one)")
    assert not filtering.filter(line())


def test_a_traceback_that_a_stranger_causes_is_left_out() -> None:
    try:
        raise ValueError("of the host")
    except ValueError:
        record = line("django.security.DisallowedHost", logging.ERROR, exc_info=sys.exc_info())
    assert LogThrottle().filter(record)
    assert record.exc_info is None


def test_faults_of_ours_and_lines_of_others_always_pass() -> None:
    filtering = LogThrottle()
    for _ in range(2 * BURST):
        assert filtering.filter(fault := line(level=logging.ERROR, status_code=500))
        assert filtering.filter(line("uvicorn.error", logging.ERROR))
        assert filtering.filter(line("tasks_app.runner"))
    assert len(fault.getMessage()) > MAX_CHARACTERS


@pytest.mark.parametrize(
    ("name", "error", "is_whole"),
    [
        ("celery.worker.loops", BrokenPipeError(32, "Broken pipe"), False),
        ("kombu.connection", ConnectionResetError(104, "reset"), False),
        ("celery.worker.loops", ValueError("of our own"), True),
        ("tasks_app.jobs", BrokenPipeError(32, "Broken pipe"), True),
        ("celery.app.trace", OSError(24, "Too many open files"), True),
    ],
)
def test_a_lost_broker_is_logged_without_a_traceback(name: str, error: Exception, is_whole: bool) -> None:
    record = line(name, logging.ERROR, exc_info=(type(error), error, None))
    assert BrokerLosses().filter(record)
    assert (record.exc_info is not None) is is_whole
