"""The wish of a client to end one of the streams on its connection, which keeps its other calls (docs/websocket.md)."""

from collections.abc import Callable
from functools import partial

from a2a.envelopes import Id, Member
from a2a.errors import InvalidParams
from a2a.types import Json
from tasks_app.transports.call import Call, Reply
from tasks_app.transports.handling import handle_own
from tasks_app.transports.refusing import refuse_stranger


async def end_stream(call: Call, member: Member, body: bytes, end: Callable[[Id], bool]) -> Reply:
    """Record the wish, and end the stream with the id in its params. Raises nothing but CancelledError.

    `end` returns whether there was such a stream.
    """
    exchange, wrapping = call.open(member.id, body), call.wrap(member.id)
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        return refuse_stranger(exchange, wrapping, error)
    exchange.row.method = member.method
    return await handle_own(call, exchange, wrapping, partial(_end, member, end), changes=False)


async def _end(member: Member, end: Callable[[Id], bool]) -> Json:
    """Return whether there was a stream, which ends. Raises InvalidParams."""
    rpc_id = member.params.get("id") if isinstance(member.params, dict) else None
    if type(rpc_id) not in (str, int, float):
        raise InvalidParams(("id", "must be the id of the call whose stream is to end"))
    return {"ended": end(rpc_id)}
