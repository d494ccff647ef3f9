"""A logging filter for what Celery logs when its broker is lost: the error in a line, without the traceback."""

import logging

LOGGERS = ("celery.worker.", "kombu")
"""The beginnings of the names of their loggers. That of the faults of jobs, celery.app.trace, is none of them: their
tracebacks are of our own code."""


class BrokerLosses(logging.Filter):
    """Leaves the traceback of a broken connection out. The line names the error, and the traceback is Celery's own."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return true, and shorten the record."""
        if record.name.startswith(LOGGERS) and record.exc_info and isinstance(record.exc_info[1], OSError):
            record.exc_info = record.exc_text = None
        return True
