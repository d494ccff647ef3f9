"""The stream methods of ACP: their params, their requests, their results, and stream.chunk as a notification."""

from typing import Annotated, Any

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a.answers import Result
from a2a.dialects.acp.tasks import Message, MessageParams, message_in
from a2a.dialects.acp.values import decode_message, encode_part
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import Text, check, or_empty, read_id, read_whole, rule, write_time
from a2a.requests import EndSharedStream, FollowSharedStream, SendChunk, SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkDocument, ChunkReceipt, ChunkRole, SharedStreamDocument, SharedStreamState
from a2a.types import Json

STATES = {state: state.name for state in SharedStreamState}
"""The states of a stream."""
_TIMES = rule(format="date-time")

# ---------------------------------------------------------------- requests


class StartParams(Struct, rename="camel"):
    stream_id: str | None = None
    participants: list[str] | None = None
    metadata: Json | None = None


class FollowParams(StartParams, rename="camel"):
    after_sequence: Annotated[int | None, rule(minimum=0)] = None
    """The sequence of the last chunk that the caller has seen, for sockets; Last-Event-ID over HTTP."""


class StreamMessageParams(Struct, rename="camel"):
    stream_id: Text
    message: MessageParams


class ChunkParams(Struct, rename="camel"):
    stream_id: Text
    chunk: MessageParams
    sequence: Annotated[int, rule(minimum=0)]
    is_last: bool | None = None


class EndParams(Struct, rename="camel"):
    stream_id: Text
    reason: str | None = None
    pause: bool | None = None


def decode_start(params: Any) -> StartSharedStream:
    """Decode the params of stream.start. Raises InvalidParams."""
    return StartSharedStream(**_start(params))


def decode_follow(params: Any) -> FollowSharedStream:
    """Decode the params of a stream.start whose caller follows the stream. Raises InvalidParams."""
    values = _start(params, FollowParams)
    return FollowSharedStream(**values, after=read_whole(or_empty(params).get("afterSequence"), "afterSequence"))


def _start(params: Any, kind: type[StartParams] = StartParams) -> dict[str, Any]:
    wire = check(or_empty(params), kind)
    if wire.get("streamId") == "":
        raise InvalidParams(("streamId", "must be a non-empty string"))
    return {
        "stream_id": wire.get("streamId"),
        "participants": tuple(wire.get("participants") or ()),
        "metadata": wire.get("metadata"),
    }


def decode_stream_message(params: Any) -> SendToSharedStream:
    """Decode the params of stream.message. Raises InvalidParams."""
    wire = check(params, StreamMessageParams)
    return SendToSharedStream(**_content(wire, "message"))


def decode_chunk(params: Any) -> SendChunk:
    """Decode the params of stream.chunk. Raises InvalidParams."""
    wire = check(params, ChunkParams)
    return SendChunk(**_content(wire, "chunk"), sequence=wire["sequence"], is_last=wire.get("isLast") is True)


def _content(wire: Json, name: str) -> dict[str, Any]:
    """Return the stream, the parts and the role of a message in the params. Raises InvalidParams."""
    message = message_in(wire, name)
    parts = decode_message(message, name).parts
    return {"stream_id": read_id(wire, "streamId"), "parts": parts, "role": ChunkRole(message["role"])}


def decode_end(params: Any) -> EndSharedStream:
    """Decode the params of stream.end. Raises InvalidParams."""
    wire = check(params, EndParams)
    return EndSharedStream(
        stream_id=read_id(wire, "streamId"), reason=wire.get("reason") or "", pauses=wire.get("pause") is True
    )


# ----------------------------------------------------------------- answers


class Stream(Struct, rename="camel"):
    """A StreamObject."""

    stream_id: str
    status: Annotated[str, rule(enum=sorted(STATES.values()))]
    participants: list[str]
    created_at: Annotated[str, _TIMES]
    closed_at: Annotated[str, _TIMES] | UnsetType = UNSET
    metadata: Json | UnsetType = UNSET


class StreamResult(Struct):
    """The result of stream.start."""

    type: Annotated[str, rule(enum=["stream"])]
    stream: Stream


class SimpleResult(Struct, rename="camel"):
    """The result of the other methods: a sentence, and where the stream is."""

    type: Annotated[str, rule(enum=["success", "notification"])]
    message: str
    stream_id: str
    sequence: int


class Chunk(Struct, rename="camel"):
    """The params of stream.chunk."""

    stream_id: str
    chunk: Message
    sequence: int
    is_last: bool


def encode_stream(result: Result) -> bytes:
    """Return a stream in its wrapper."""
    stream = _stream_of(result)
    out: Json = {
        "streamId": stream.id,
        "status": STATES[stream.state],
        "participants": stream.participants,
        "createdAt": write_time(stream.created_at),
    }
    if stream.closed_at is not None:
        out["closedAt"] = write_time(stream.closed_at)
    if stream.metadata is not None:
        out["metadata"] = stream.metadata
    return orjson.dumps({"type": "stream", "stream": out})


def encode_end(result: Result) -> bytes:
    """Return the result of stream.end."""
    stream = _stream_of(result)
    return _simple("success", f"Stream {stream.id} has been {stream.state.value}", stream.id, stream.seq)


def encode_message_receipt(result: Result) -> bytes:
    """Return the result of stream.message."""
    receipt = _receipt_of(result)
    return _simple("success", f"Message sent to stream {receipt.stream_id}", receipt.stream_id, receipt.seq)


def encode_chunk_receipt(result: Result) -> bytes:
    """Return the result of a stream.chunk that was a call."""
    receipt = _receipt_of(result)
    verb = "was there already in" if receipt.is_repeat else "sent to"
    return _simple("notification", f"Chunk {verb} stream {receipt.stream_id}", receipt.stream_id, receipt.seq)


def _simple(kind: str, sentence: str, stream_id: str, seq: int) -> bytes:
    return orjson.dumps({"type": kind, "message": sentence, "streamId": stream_id, "sequence": seq})


def _stream_of(result: Result) -> SharedStreamDocument:
    if not isinstance(result, SharedStreamDocument):
        raise TypeError(f"{type(result).__name__} is no shared stream")
    return result


def _receipt_of(result: Result) -> ChunkReceipt:
    if not isinstance(result, ChunkReceipt):
        raise TypeError(f"{type(result).__name__} is no receipt of a chunk")
    return result


def encode_chunk(chunk: ChunkDocument) -> bytes:
    """Return a chunk as a stream.chunk without an id."""
    message = {
        "role": chunk.role.value,
        "parts": [encode_part(part) for part in chunk.parts],
        "timestamp": write_time(chunk.created_at),
        "agentId": chunk.author,
    }
    params = {"streamId": chunk.stream_id, "chunk": message, "sequence": chunk.seq, "isLast": chunk.is_last}
    return orjson.dumps({"jsonrpc": "2.0", "method": "stream.chunk", "params": params})


METHODS = {
    "stream.start": Method(
        request=StartSharedStream,
        decode=decode_start,
        encode=encode_stream,
        params=StartParams,
        result=StreamResult,
        as_stream=Method(
            request=FollowSharedStream, decode=decode_follow, encode=encode_stream, params=FollowParams, result=Chunk
        ),
    ),
    "stream.message": Method(
        request=SendToSharedStream,
        decode=decode_stream_message,
        encode=encode_message_receipt,
        params=StreamMessageParams,
        result=SimpleResult,
    ),
    "stream.chunk": Method(
        request=SendChunk,
        decode=decode_chunk,
        encode=encode_chunk_receipt,
        message="chunk",
        params=ChunkParams,
        result=SimpleResult,
    ),
    "stream.end": Method(
        request=EndSharedStream, decode=decode_end, encode=encode_end, params=EndParams, result=SimpleResult
    ),
}
"""The methods of streams."""
