"""The JSON-RPC 2.0 envelope: a version, an id, and a method with params; a result or an error."""

from typing import Any

import orjson
from msgspec import UNSET
from msgspec.structs import replace

from a2a.envelopes import AnyMember, BadMember, Envelope, Failure, Id, Member
from a2a.envelopes.body import holds_nul, path_of_nul, read_json
from a2a.errors import Error, InvalidRequest
from a2a.language import Language

MAX_BATCH = 1_000
"""Members of one batch."""
MAX_ID = 1_024
"""Characters of an id."""
MAX_FLOAT_ID = 2**53
"""The largest id with a fraction point. A larger float may differ from the number that was sent."""
MEDIA = "application/json"
MEMBERS = frozenset({"jsonrpc", "method", "params", "id"})
"""The members of a request (JSON-RPC 2.0, section 4)."""


def parse(body: bytes) -> AnyMember | list[AnyMember]:
    """Parse a body into a single member, or into the members of a batch.

    Raises ParseError and InvalidRequest for faults of the whole body. A malformed member is a BadMember.
    """
    value = read_json(body)
    nul = holds_nul(body)
    if isinstance(value, list):
        if not value:
            raise InvalidRequest(detail="a batch must have at least one member")
        if len(value) > MAX_BATCH:
            raise InvalidRequest(detail=f"a batch may have {MAX_BATCH} members at most, not {len(value)}")
        return [_member(item, nul) for item in value]
    return _member(value, nul)


def head(rpc_id: Id) -> bytes:
    """Return the bytes before the result of a successful call."""
    return b'{"jsonrpc":"2.0","id":' + orjson.dumps(rpc_id) + b',"result":'


def failure(rpc_id: Id, error: Error, language: Language, status: int | None = None) -> Failure:
    """Encode the answer to a failed call."""
    wire = language.error(error)
    if language.call_id_member and "data" in wire:
        wire["data"][language.call_id_member] = rpc_id
    payload = b'{"jsonrpc":"2.0","id":' + orjson.dumps(rpc_id) + b',"error":' + orjson.dumps(wire) + b"}"
    return Failure(payload, language.code(error), status or language.status(error))


def check_closed(member: Member) -> None:
    """Check that a call has no members but those of JSON-RPC, and that its params are an object. Raises
    InvalidRequest."""
    extra = sorted(member.source.keys() - MEMBERS) if isinstance(member.source, dict) else []
    if extra:
        names = ", ".join(sorted(MEMBERS))
        raise InvalidRequest(detail=f"a request has the members {names} and no other, such as {extra[0][:64]}")
    if member.params is not UNSET and not isinstance(member.params, dict):
        raise InvalidRequest(detail=f"params must be an object, not {_kind(member.params)}")


ENVELOPE = Envelope(
    name="jsonrpc",
    parse=parse,
    head=head,
    tail=b"}",
    failure=failure,
    media=lambda language: MEDIA,
    check_closed=check_closed,
)


def _member(value: Any, nul: bool) -> AnyMember:
    member = _read_member(value, nul)
    if not isinstance(member, BadMember):
        return member
    method = value.get("method") if isinstance(value, dict) else None
    return replace(member, method=method if isinstance(method, str) else "", source=value)


def _read_member(value: Any, nul: bool) -> AnyMember:
    if not isinstance(value, dict):
        return _bad(None, f"a request must be an object, not {_kind(value)}")
    rpc_id = value.get("id", UNSET)
    if not (rpc_id is UNSET or rpc_id is None or type(rpc_id) in (str, int)) and (wrong := _wrong_id(rpc_id)):
        return _bad(None, wrong)
    # PostgreSQL cannot store U+0000, and the id is recorded even if the member is malformed in other ways.
    if isinstance(rpc_id, str) and "\0" in rpc_id:
        return _bad(None, "id holds the character U+0000")
    if isinstance(rpc_id, str) and len(rpc_id) > MAX_ID:
        return _bad(None, f"id must have {MAX_ID} characters at most")
    id_or_null: Id = None if rpc_id is UNSET else rpc_id
    if value.get("jsonrpc") != "2.0":
        return _bad(id_or_null, 'jsonrpc must be "2.0"')
    method = value.get("method")
    if not isinstance(method, str) or not method:
        return _bad(id_or_null, "method must be a non-empty string")
    if nul and (path := path_of_nul(value | {"params": None})) is not None:
        return _bad(id_or_null, f"{path or 'the name of a member'} holds the character U+0000")
    return Member(id=rpc_id, method=method, params=value.get("params", UNSET), source=value, nul=nul)


def _wrong_id(rpc_id: Any) -> str | None:
    """Return why a value that is neither a string nor an integer cannot be an id; None for a number such as 1.0."""
    if not isinstance(rpc_id, float):
        return f"id must be a string or an integer, not {_kind(rpc_id)}"
    if abs(rpc_id) > MAX_FLOAT_ID:
        return "id must be sent as a string: this number is too large to be sent back exactly"
    return None if rpc_id.is_integer() else "id must be a string or an integer, not a fraction"


def _bad(rpc_id: Id, detail: str) -> BadMember:
    return BadMember(id=rpc_id, error=InvalidRequest(detail=detail))


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")
