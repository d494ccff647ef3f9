"""The door for streams of calls: `GET /stream/ID` follows the task of a call by the id of the call, with the key of
its owner.

It is a door of SPARC, whose clients send a message in one place and follow it in another.
"""

from functools import partial
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from msgspec import UNSET
from msgspec.structs import replace

from a2a import languages
from a2a.dialects.sparc.language import DIALECT
from a2a.errors import TaskNotFound
from a2a.requests import SubscribeToTask
from tasks_app.database.bridge import bridge
from tasks_app.database.work import DoSlowly
from tasks_app.exchanges.lookup import OwnCall, find_own_call
from tasks_app.limits.rate_limits import limits
from tasks_app.limits.rates import LEAST_COST
from tasks_app.operations import authorize, cost_of
from tasks_app.transports.call import Call
from tasks_app.transports.handling import handle
from tasks_app.transports.http import Refusal, call_of, line_of, refuse
from tasks_app.transports.http_replies import response_to
from tasks_app.transports.meaning import Selection
from tasks_app.transports.refusing import refuse_stranger

ENDPOINT = languages.ALL.endpoints["sparc"]
METHOD = "tasks/resubscribe"
"""The method that a call of this door stands for."""
LANGUAGE = replace(DIALECT, column={**DIALECT.column, TaskNotFound: DIALECT.column[TaskNotFound]._replace(status=404)})
"""SPARC as it answers at a path that stands for a call: where there is none, the path is not found."""
NO_CALL = (
    "no call of yours has this id, or its record is past its time; the id is that of the JSON-RPC request, or the "
    "X-Request-ID of its answer"
)
NO_TASK = "the call was answered without a task, so there is nothing to follow"


async def follow_call(request: HttpRequest, call_id: str, agent: str | None = None) -> HttpResponseBase:
    """Send the stream of the task of a call, from the start or behind Last-Event-ID."""
    if request.method != "GET":
        return refuse(request, Refusal(405, f"use GET, not {request.method}", allow="GET"), ENDPOINT)
    call = call_of(request, ENDPOINT, agent)
    exchange, wrapping = call.open(UNSET, line_of(request)), call.wrap(call_id)
    exchange.row.method = METHOD
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        return await response_to(request, call, refuse_stranger(exchange, wrapping, error))
    own, cause = await _find(call, call_id)
    if own is not None:
        wrapping = call.wrap(own.rpc_id)
    reply = await handle(call, exchange, wrapping, partial(_select, own, cause))
    return await response_to(request, call, reply)


async def _find(call: Call, call_id: str) -> tuple[OwnCall | None, Exception | None]:
    """Return the call with the id, or the error of the search, which `handle` reports.

    The search may read thousands of rows, so it costs as much as the stream. `handle` charges for the call too, so its
    charge is given back before.
    """
    owner, cost = call.caller.owner_id, cost_of(SubscribeToTask)
    own = None
    try:
        authorize(SubscribeToTask, call.caller)
        await limits.spend(call.caller, cost)
        try:
            search = DoSlowly(partial(find_own_call, owner, call_id), owner)
            own = await bridge.ask(search, departure=call.departure)
        finally:
            limits.give_back(call.caller, cost if own and own.task_id else LEAST_COST)
    except Exception as error:  # noqa: BLE001  # handed to the one catch of the doors
        return None, error
    return own, None


def _select(own: OwnCall | None, cause: Exception | None) -> Selection:
    """Return the subscription to the task of the call. Raises the error of the search."""
    if cause is not None:
        raise cause

    method = LANGUAGE.methods[METHOD]
    if own is not None and own.task_id is not None:
        return LANGUAGE, method, {"id": own.task_id}
    return LANGUAGE, replace(method, decode=partial(_refuse, NO_CALL if own is None else NO_TASK)), {}


def _refuse(detail: str, params: Any) -> SubscribeToTask:
    """Refuse, in place of the decoder: the rights of the caller are checked before it."""
    raise TaskNotFound(detail=detail)


follow_call.endpoint = ENDPOINT.name  # type: ignore[attr-defined]  # for the handler, which refuses before the view
