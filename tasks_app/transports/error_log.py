"""The records of the log about errors of calls: one for each, with the fields of tasks_app/log_fields.py."""

import logging

from a2a.errors import Error, Unavailable
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.log_fields import error_fields
from tasks_app.transports.call_log import refusals

log = logging.getLogger("tasks_app.errors")


def log_error(exchange: OpenExchange, error: Error) -> None:
    """Log an error of a call. A fault of ours has been logged with its traceback, under its reference."""
    if "reference" not in error.facts:
        level = logging.WARNING if isinstance(error, Unavailable) else logging.INFO
        _log(log, level, exchange, error, {})


def log_refusal(exchange: OpenExchange, error: Error, status: int) -> None:
    """Log the refusal of a call, as log_error() does.

    Strangers can cause any number of refusals, so those without a caller go to the logger whose lines are limited.
    """
    if exchange.row.caller_id is not None:
        log_error(exchange, error)
    elif "reference" not in error.facts:
        _log(refusals, logging.INFO, exchange, error, {"status_code": status})


def _log(logger: logging.Logger, level: int, exchange: OpenExchange, error: Error, more: dict[str, int]) -> None:
    if logger.isEnabledFor(level):
        fields = fields_of(exchange, error.full_message, reason=error.reason)
        logger.log(
            level, "exchange %s: %s: %s", exchange.row.id, error.reason, fields["detail"], extra={**fields, **more}
        )


def fields_of(exchange: OpenExchange, detail: str, *, reference: str = "", reason: str = "") -> dict[str, str | None]:
    """Return the fields of a record about an error of a call."""
    row = exchange.row
    return error_fields(
        row.method or row.door,
        detail,
        task_id=row.task_id,
        caller=exchange.caller_name,
        exchange=row.id,
        reference=reference,
        reason=reason,
    )
