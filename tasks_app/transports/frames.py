"""The frames of the WebSocket door: JSON-RPC, with service parameters and sequence numbers beside it
(docs/websocket.md#frames)."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from msgspec.structs import replace

from a2a.documents import Encoded
from a2a.envelopes import AnyMember, Id
from a2a.errors import InvalidRequest
from a2a.language import VERSION_HEADER
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.call import Call

PARAMETERS = "a2a-service-parameters"
"""The member with the service parameters of a frame (A2A 1.0.1, 12.3)."""
AFTER = "afterSequence"
"""The service parameter with the sequence number of the last event that the client has seen."""
SEQUENCE = "sequence"
"""The member of an event with its sequence number."""
END = "stream/end"
"""The method of the last frame of a stream, and of the client's wish to end one."""
MAX_SEQ = 2**63 - 1


def adapt(call: Call, member: AnyMember) -> Call:
    """Return the call with the service parameters of its frame, which come before those of the handshake.

    Raises InvalidRequest.
    """
    if not isinstance(member.source, dict) or (value := member.source.get(PARAMETERS)) is None:
        return call
    if not isinstance(value, dict):
        raise InvalidRequest(detail=f"{PARAMETERS} must be an object")
    parameters = {name.lower(): parameter for name, parameter in value.items()}
    if len(parameters) < len(value):
        raise InvalidRequest(detail=f"{PARAMETERS} must not name a parameter twice, whatever its case")
    after = parameters.pop(AFTER.lower(), None)
    if after is not None and not (type(after) is int and 0 <= after <= MAX_SEQ):
        kind = "; it is a string" if isinstance(after, str) else ""
        raise InvalidRequest(
            detail=f"{PARAMETERS}.{AFTER} must be a whole number, that of the last event you have seen{kind}"
        )
    if wrong := next((name for name, parameter in parameters.items() if not isinstance(parameter, str)), None):
        raise InvalidRequest(detail=f"{PARAMETERS}.{wrong[:64]} must be a string")
    return replace(
        call,
        after=lambda: after,
        version=parameters.get(VERSION_HEADER.lower(), call.version) or None,
        metadata=partial(_parameter, parameters, call.metadata),
    )


def _parameter(parameters: Mapping[str, str], handshake: Any, name: str) -> str | None:
    value: str | None = parameters.get(name.lower())
    return handshake(name) if value is None else value


def with_parameters(payload: Encoded, parameters: Mapping[str, str]) -> bytes:
    """Return an answer with its own service parameters: the version, and the extensions that are active."""
    return _with_members(payload, {PARAMETERS: parameters} if parameters else {})


def _with_members(payload: Encoded, members: Mapping[str, Any]) -> bytes:
    """Return a JSON object with more members at its end."""
    body = bytes(payload)
    return b"".join([memoryview(body)[:-1], b",", orjson.dumps(members)[1:]]) if members else body


def end_of_stream(rpc_id: Id, reason: str, *, resume: bool) -> bytes:
    """Return the last frame of a stream, a notification of JSON-RPC that names the id of the stream's call."""
    params = {"id": rpc_id, "reason": reason, "resume": resume}
    return orjson.dumps({"jsonrpc": "2.0", "method": END, "params": params})


async def text_of(payload: Encoded, parameters: Mapping[str, str] | None = None, seq: int | None = None) -> str:
    """Return an answer or an event as the text of its frame, a large one made off the loop.

    A direct reply has no sequence number.
    """
    members: dict[str, Any] = {} if seq is None else {SEQUENCE: seq}
    if parameters:
        members[PARAMETERS] = parameters
    return await off_loop(_text, payload, members) if len(payload) > LARGE else _text(payload, members)


def _text(payload: Encoded, members: Mapping[str, Any]) -> str:
    return _with_members(payload, members).decode()
