"""Faults of ours in calls: each is logged with its traceback, and its caller gets a reference to the log."""

import logging
from collections.abc import Mapping

from a2a.errors import Error, Internal, Unavailable
from a2a.mistakes import AgentMistake
from tasks_app.database.errors import MAY_PASS, log_error
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.log_fields import line_of, words_of
from tasks_app.transports.error_log import fields_of

log = logging.getLogger(__name__)


def fault(exchange: OpenExchange, cause: Exception) -> Error:
    """Log the cause of a fault, and return the error for its caller.

    The reference is the id of the exchange, by which operators find the call.
    """
    reference = exchange.row.id
    fields = fields_of(exchange, words_of(cause), reference=reference)
    what = f"exchange {exchange.row.id} failed"
    if isinstance(cause, AgentMistake):
        what = f"{what}: {line_of(str(cause))}"  # its author need not look for it at the end of a traceback
    return fault_with(what, cause, reference, fields)


def fault_with(what: str, cause: Exception, reference: str, fields: Mapping[str, str | None] | None = None) -> Error:
    """Log the cause of a fault, and return the error for its caller. A database that is away may be back soon."""
    log_error(log, cause, "%s, reference %s", what, reference, fields=fields)
    if isinstance(cause, MAY_PASS):
        return Unavailable(reference=reference)
    return Internal(reference=reference)
