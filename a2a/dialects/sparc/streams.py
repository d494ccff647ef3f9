"""The events of streams in SPARC, whose names come before their data."""

import re

import orjson

from a2a import sse
from a2a.answers import Frame
from a2a.dialects import v0_3

NAMES = {b"task": b"task-status-update"}
"""The names of events that differ from the `kind` of their result."""
_KIND = re.compile(rb',"result":\{"kind":"([a-z-]+)"')
"""The beginning of a result. No text within a string of JSON matches, because its quotation marks are escaped."""


def encode_frame(frame: Frame, history_length: int | None) -> bytes | None:
    """Return one event of a stream, whose first member is its `kind`."""
    wire = v0_3.frame_members(frame, history_length)
    return None if wire is None else orjson.dumps({"kind": wire["kind"]} | wire)


def named_frame(data: bytes, seq: int | None = None) -> bytes:
    """Return one event with its name and its sequence number."""
    kind = _KIND.search(data)
    if kind is None:
        return sse.frame(data, seq)
    return b"event: " + NAMES.get(kind[1], kind[1]) + b"\n" + sse.frame(data, seq)
