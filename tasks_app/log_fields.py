"""The fields of log records about errors, and a format of the log, a JSON object a line, that shows them."""

import json
import logging
import traceback
from datetime import UTC, datetime

from tasks_app.masking import mask_id, mask_trace

FIELDS = ("operation", "task_id", "detail", "caller", "exchange", "reference", "reason")
"""The fields of a record about an error. They are attributes of the record."""
LONGEST = 1_000
"""Characters of a field."""


def error_fields(
    operation: str,
    detail: str,
    *,
    task_id: str | None = None,
    caller: str = "",
    exchange: str = "",
    reference: str = "",
    reason: str = "",
) -> dict[str, str | None]:
    """Return the fields of a record, to be passed as `extra`. Secrets are masked in texts that others chose."""
    return {
        "operation": mask_id(operation),
        "task_id": task_id and mask_id(task_id),
        "detail": _safe(detail),
        "caller": caller,
        "exchange": exchange,
        "reference": reference,
        "reason": reason,
    }


def run_fields(task_id: str, agent: str, detail: str, reference: str = "") -> dict[str, str | None]:
    """Return the fields of a log record about a run that failed."""
    return error_fields(f"run {agent}", detail, task_id=task_id, reference=reference, reason="RUN_FAILED")


def line_of(text: str) -> str:
    """Return a text that others chose as a part of the message of a record: masked, cut, and in one line, so that it
    does not look like another record."""
    return " ".join(_safe(text).split())


def _safe(text: str) -> str:
    return mask_trace(text)[:LONGEST]


def words_of(error: Exception) -> str:
    """Return the class and the message of an error."""
    return "".join(traceback.format_exception_only(error)).strip()


class JsonLine(logging.Formatter):
    """A formatter of lines in JSON, for programs that collect logs. Secrets are masked."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the record as a JSON object, with the fields of an error if it is about one."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": mask_trace(record.getMessage()),
        }
        line |= {name: value for name in FIELDS if (value := getattr(record, name, None))}
        if record.exc_info:
            line["traceback"] = mask_trace(self.formatException(record.exc_info))
        return json.dumps(line, default=str)
