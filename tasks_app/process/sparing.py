"""A log that strangers cannot fill: lines that any request can cause are short and few."""

import logging
import threading
import time

LOGGERS = ("django.request", "django.security", "tasks_app.calls.refused", "uvicorn")
"""Loggers, with their children, that write about requests which need no key."""
BURST = 50
"""Such lines that may come at once; then it is one a second."""
LONGEST = 500
"""Characters of such a line."""


class Sparing(logging.Filter):
    """Lets few lines about refused requests pass, each without a traceback, and says how many it has left out. Faults
    of ours (HTTP 5xx) always pass, and so does every other logger."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()
        self.left = float(BURST)
        self.at = time.monotonic()
        self.dropped = 0

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the line is written; it is made short."""
        if not _of_strangers(record):
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
        told = f" ({dropped} such lines were left out before this one)" if dropped else ""
        record.msg, record.args = record.getMessage()[:LONGEST] + told, ()
        record.exc_info = record.exc_text = None
        return True


def _of_strangers(record: logging.LogRecord) -> bool:
    of_requests = any(record.name == name or record.name.startswith(f"{name}.") for name in LOGGERS)
    return of_requests and getattr(record, "status_code", 400) < 500 and not _is_fault(record)


def _is_fault(record: logging.LogRecord) -> bool:
    """Tell whether uvicorn logged an exception that was not caught."""
    return record.name.startswith("uvicorn") and record.levelno >= logging.ERROR
