"""A logging filter that keeps strangers from filling the log: lines that any request can cause are short and few."""

import logging
import threading
import time

LOGGERS = ("django.request", "django.security", "tasks_app.calls.refused", "uvicorn")
"""Loggers, with the loggers below them, whose lines a request without a key can cause."""
BURST = 50
"""Lines that may come at once. After them one line a second passes."""
MAX_CHARACTERS = 500
"""Characters of a line that passes."""


class LogThrottle(logging.Filter):
    """A token bucket for lines about refused requests.

    Lines that pass lose their traceback and say how many lines were left out before. Our own faults (HTTP 5xx) and the
    lines of all other loggers always pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.left = float(BURST)
        self.at = time.monotonic()
        self.dropped = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line may pass, and shorten it."""
        if not _is_caused_by_stranger(record):
            return True
        with self.lock:
            now = time.monotonic()
            self.left = min(BURST, self.left + now - self.at)
            self.at = now
            if self.left < 1:
                self.dropped += 1
                return False
            self.left -= 1
            dropped, self.dropped = self.dropped, 0
        note = f" ({dropped} such lines were left out before this one)" if dropped else ""
        record.msg, record.args = record.getMessage()[:MAX_CHARACTERS] + note, ()
        record.exc_info = record.exc_text = None
        return True


def _is_caused_by_stranger(record: logging.LogRecord) -> bool:
    is_about_request = any(record.name == name or record.name.startswith(f"{name}.") for name in LOGGERS)
    return is_about_request and getattr(record, "status_code", 400) < 500 and not _is_fault(record)


def _is_fault(record: logging.LogRecord) -> bool:
    """Return whether the record is an exception of ours that uvicorn caught and logged."""
    return record.name.startswith("uvicorn") and record.levelno >= logging.ERROR
