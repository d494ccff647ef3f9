"""The wish of a client to end one of the streams on its connection, which keeps its other calls (docs/websocket.md)."""

from collections.abc import Callable

from a2a.envelopes import Id, Member
from a2a.errors import InvalidParams
from tasks_app.exchanges.recording import recorder
from tasks_app.transports.call import Call, Reply
from tasks_app.transports.refusing import refuse_stranger


async def end_stream(call: Call, member: Member, body: bytes, end: Callable[[Id], bool]) -> Reply:
    """Record the wish, and end the stream with the id in its params. Raises InvalidParams.

    `end` returns whether there was such a stream.
    """
    exchange, wrapping = call.open(member.id, body), call.wrap(member.id)
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        return refuse_stranger(exchange, wrapping, error)
    rpc_id = member.params.get("id") if isinstance(member.params, dict) else None
    if type(rpc_id) not in (str, int, float):
        raise InvalidParams(("id", "must be the id of the call whose stream shall end"))
    exchange.row.method = member.method
    exchange.set_caller(call.caller)
    result = b'{"ended":true}' if end(rpc_id) else b'{"ended":false}'
    payload = wrapping.head + result + wrapping.tail
    exchange.end("notified" if wrapping.silent else "result", payload, status=None)
    exchange.keep(payload)
    recorder.close(exchange)
    return Reply(
        request_id=exchange.request_id, wrapping=wrapping, payload=None if wrapping.silent else payload, status=200
    )
