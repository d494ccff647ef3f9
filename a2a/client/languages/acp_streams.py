"""The streams of ACP on the client's side: conversations of several participants."""

from typing import Any

from a2a.client.answers import SharedStream
from a2a.client.language import Operation
from a2a.dialects.acp.streams import STATES
from a2a.dialects.acp.values import decode_part, encode_part
from a2a.errors import InvalidParams
from a2a.params import read_time
from a2a.requests import (
    EndSharedStream,
    FollowSharedStream,
    Request,
    SendChunk,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.shared_streams import ChunkDocument, ChunkRole
from a2a.types import Json

_STATES = {name: state for state, name in STATES.items()}

# ---------------------------------------------------------------- requests


def encode_start(request: StartSharedStream) -> Json:
    params: Json = {} if request.stream_id is None else {"streamId": request.stream_id}
    if request.participants:
        params["participants"] = list(request.participants)
    return params if request.metadata is None else params | {"metadata": request.metadata}


def encode_message(request: SendToSharedStream) -> Json:
    return {"streamId": request.stream_id, "message": _content(request)}


def encode_chunk(request: SendChunk) -> Json:
    place = {"streamId": request.stream_id, "sequence": request.sequence, "isLast": request.is_last}
    return place | {"chunk": _content(request)}


def encode_end(request: EndSharedStream) -> Json:
    params: Json = {"streamId": request.stream_id}
    if request.reason:
        params["reason"] = request.reason
    return params | ({"pause": True} if request.pauses else {})


def _content(request: SendToSharedStream) -> Json:
    return {"role": request.role.value, "parts": [encode_part(part) for part in request.parts]}


# ----------------------------------------------------------------- answers


def decode_stream(wire: Json) -> SharedStream:
    stream = wire["stream"]
    created_at = read_time(stream["createdAt"], "createdAt")
    if created_at is None:
        raise InvalidParams(("createdAt", "is required"))
    return SharedStream(
        id=stream["streamId"],
        state=_STATES[stream["status"]],
        participants=tuple(stream["participants"]),
        created_at=created_at,
        closed_at=read_time(stream.get("closedAt"), "closedAt"),
        metadata=stream.get("metadata"),
    )


def decode_place(wire: Json) -> int:
    """Return the number of the chunk in its stream."""
    place: int = wire["sequence"]
    return place


def decode_event(wire: Any) -> SharedStream | ChunkDocument:
    """Return the stream, which is the first event of a subscription, or a chunk of it."""
    if "chunk" not in wire:
        return decode_stream(wire)
    chunk = wire["chunk"]
    created_at = read_time(chunk["timestamp"], "timestamp")
    if created_at is None:
        raise InvalidParams(("timestamp", "is required"))
    return ChunkDocument(
        stream_id=wire["streamId"],
        seq=wire["sequence"],
        author=chunk["agentId"],
        role=ChunkRole(chunk["role"]),
        parts=tuple(decode_part(part, f"parts[{place}]") for place, part in enumerate(chunk["parts"])),
        created_at=created_at,
        is_last=wire["isLast"],
    )


OPERATIONS: dict[type[Request], Operation] = {
    StartSharedStream: Operation(method="stream.start", encode=encode_start, decode=decode_stream),
    FollowSharedStream: Operation(method="stream.start", encode=encode_start, decode=decode_event),
    SendToSharedStream: Operation(method="stream.message", encode=encode_message, decode=decode_place),
    SendChunk: Operation(method="stream.chunk", encode=encode_chunk, decode=decode_place),
    EndSharedStream: Operation(method="stream.end", encode=encode_end, decode=decode_place),
}
"""The operations on streams."""
