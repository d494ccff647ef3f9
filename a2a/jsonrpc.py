"""The JSON-RPC 2.0 envelope: bytes in, calls out; answers in, bytes out. It knows no method, no dialect."""

from typing import Any

import orjson
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a.errors import Error, InvalidParams, InvalidRequest, ParseError

MAX_DEPTH = 64
MAX_BATCH = 1_000
MAX_ID = 1_024
TAIL = b"}"

Id = str | int | None


class Call(Struct, frozen=True, kw_only=True):
    """One member of the envelope that is a valid request."""

    id: Id | UnsetType
    """UNSET for a notification; null is an id (JSON-RPC 2.0, section 4)."""
    method: str
    params: Any
    """UNSET when absent; a dialect wants an object."""
    source: Any
    """The member as it was parsed."""
    nul: bool = False
    """There may be U+0000 in its params; the dialect they are of is to say so."""


class BadCall(Struct, frozen=True, kw_only=True):
    """One member that is not a valid request."""

    id: Id | UnsetType
    """As far as it could be read, else null; UNSET for a notification, which is not answered."""
    error: Error
    source: Any = None
    """The member as it was parsed."""


Member = Call | BadCall


def parse(body: bytes) -> Member | list[Member]:
    """A single member, or the members of a batch. Raises ParseError and InvalidRequest for the whole body."""
    value = read_json(body)
    nul = b"\\u0000" in body
    if isinstance(value, list):
        if not value:
            raise InvalidRequest(detail="a batch must have at least one member")
        if len(value) > MAX_BATCH:
            raise InvalidRequest(detail=f"a batch may have {MAX_BATCH} members at most, not {len(value)}")
        return [_member(item, nul) for item in value]
    return _member(value, nul)


def read_json(body: bytes) -> Any:
    """Strict JSON no deeper than MAX_DEPTH: no NaN, no lone surrogates, UTF-8 without a byte order mark."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # What orjson says beyond 1,024 levels.
        if "depth limit" in str(error):
            raise _too_deep() from None
        raise ParseError from None
    # Counting is a hundred times cheaper than walking, and clears every ordinary body.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and deeper_than(value, MAX_DEPTH):
        raise _too_deep()
    return value


def head(rpc_id: Id) -> bytes:
    """What stands before the result of a call that succeeded; TAIL stands behind it."""
    return b'{"jsonrpc":"2.0","id":' + orjson.dumps(rpc_id) + b',"result":'


def reply(rpc_id: Id, result: bytes) -> bytes:
    """The answer of a call that succeeded; the result is JSON already."""
    return head(rpc_id) + result + TAIL


def failure(rpc_id: Id, error: dict[str, Any]) -> bytes:
    """The answer of a call that failed; the error is a dialect's {code, message, data?}."""
    return b'{"jsonrpc":"2.0","id":' + orjson.dumps(rpc_id) + b',"error":' + orjson.dumps(error) + b"}"


def _member(value: Any, nul: bool) -> Member:
    member = _checked(value, nul)
    return replace(member, source=value) if isinstance(member, BadCall) else member


def _checked(value: Any, nul: bool) -> Member:
    if not isinstance(value, dict):
        return _bad(None, f"a request must be an object, not {_kind(value)}")
    rpc_id = value.get("id", UNSET)
    if not (rpc_id is UNSET or rpc_id is None or type(rpc_id) in (str, int)):
        return _bad(None, f"id must be a string or an integer, not {_kind(rpc_id)}")
    # PostgreSQL can store U+0000 in no text at all; an id is recorded whatever else is wrong.
    if isinstance(rpc_id, str) and "\0" in rpc_id:
        return _bad(None, "id holds the character U+0000")
    if isinstance(rpc_id, str) and len(rpc_id) > MAX_ID:
        return _bad(None, f"id must have {MAX_ID} characters at most")
    known: Id = None if rpc_id is UNSET else rpc_id
    if value.get("jsonrpc") != "2.0":
        return _bad(known, 'jsonrpc must be "2.0"')
    method = value.get("method")
    if not isinstance(method, str) or not method:
        return _bad(known, "method must be a non-empty string")
    if nul and (path := path_of_nul(value | {"params": None})) is not None:
        return _bad(known, f"{path or 'the name of a member'} holds the character U+0000")
    return Call(id=rpc_id, method=method, params=value.get("params", UNSET), source=value, nul=nul)


def nul_in(params: Any) -> InvalidParams | None:
    """What is said to params that hold the one character that no database does."""
    path = path_of_nul(params)
    return None if path is None else InvalidParams((path or "params", "must not hold the character U+0000"))


def _bad(rpc_id: Id, detail: str) -> BadCall:
    return BadCall(id=rpc_id, error=InvalidRequest(detail=detail))


def _too_deep() -> InvalidRequest:
    return InvalidRequest(detail=f"the JSON is nested deeper than {MAX_DEPTH} levels")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def deeper_than(value: Any, limit: int) -> bool:
    """Whether JSON is nested deeper than so many levels."""
    level = [value]
    for _ in range(limit):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def path_of_nul(value: Any, path: str = "") -> str | None:
    """Where the first U+0000 is, in a key or a string; the depth is bounded by read_json."""
    if isinstance(value, str):
        return path if "\0" in value else None
    if isinstance(value, dict):
        pairs = [(f"{path}.{key}" if path else key, key, child) for key, child in value.items()]
    elif isinstance(value, list):
        pairs = [(f"{path}[{index}]", "", child) for index, child in enumerate(value)]
    else:
        return None
    for below, key, child in pairs:
        if "\0" in key:
            return path
        if (found := path_of_nul(child, below)) is not None:
            return found
    return None
