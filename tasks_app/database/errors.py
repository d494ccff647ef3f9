"""Errors of the database as callers get them, and as the log does."""

import logging
import sys
from collections.abc import Mapping

from django.conf import settings
from django.db import IntegrityError, InterfaceError, InternalError, OperationalError

from a2a.errors import Unavailable
from tasks_app.database.sessions import is_canceled, is_overloaded, is_spent, is_too_slow

MAY_PASS = (OperationalError, InterfaceError)
"""Errors after which the same call may succeed soon. Callers get 503, or what their language has in its place."""
AWAY = (*MAY_PASS, InternalError, Unavailable)
"""Errors of a database that is away, full, read-only or overloaded. It may have done the work or not."""

RETRY_SECONDS = 2
"""Seconds after which a caller may try again, who got one of these errors."""
CANNOT_NOW = "The database cannot do this now."


def may_pass(error: BaseException | None) -> bool:
    """Return whether the same call may succeed soon after the error.

    psycopg has two such errors among its internal ones: that of a session that takes no writes, and that of one that
    the server ended because its transaction stalled.
    """
    return isinstance(error, MAY_PASS) or (isinstance(error, InternalError) and is_spent(error))


class Busy(Unavailable, OperationalError, twin=True):
    """The database did not do the work in time. Callers may come again. For work of our own it is an OperationalError,
    as of a database that is away."""


def log_failure(log: logging.Logger, sentence: str, *arguments: object) -> None:
    """Log the exception at hand as `log_error` does."""
    log_error(log, sys.exception(), sentence, *arguments)


def log_error(
    log: logging.Logger,
    error: BaseException | None,
    sentence: str,
    *arguments: object,
    fields: Mapping[str, str | None] | None = None,
) -> None:
    """Log an error, in a line if the database is away, else with its traceback. The fields are those of the record.

    Calls and work that is repeated meet a database that is away again and again, and always at the same place.
    """
    if isinstance(error, AWAY):
        words = error.full_message if isinstance(error, Unavailable) else str(error)
        log.error("%s: %s", sentence % arguments, " ".join(words.split()), extra=fields)
    else:
        log.error(sentence, *arguments, exc_info=error, extra=fields)


def error_for_callers(error: Exception) -> Exception:
    """Return the error for callers: Busy in place of an error of the database that may pass."""
    if is_too_slow(error):
        busy = Busy(detail=f"the read was stopped after {settings.A2A_READ_SECONDS:g} s: ask for less at once")
    elif is_canceled(error):
        busy = Busy(detail="the database stopped the work: by a limit of its own, or for an operator")
    elif is_spent(error) or is_overloaded(error):
        busy = Busy(detail="the database refuses the call at the moment")
    else:
        return error
    busy.__cause__ = error
    return busy


def constraint_of(error: IntegrityError) -> str:
    """Return the constraint that a change would have broken: its name, or what SQLite names, its columns or its index.
    Empty where the database names none."""
    if diagnosis := getattr(error.__cause__, "diag", None):
        return diagnosis.constraint_name or ""
    return str(error).partition("constraint failed: ")[2]
