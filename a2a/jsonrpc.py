"""The JSON-RPC 2.0 envelope: bytes in, calls out; answers in, bytes out. It knows no method, no dialect."""

import re
from typing import Any

import orjson
from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from a2a.errors import Error, InvalidParams, InvalidRequest, ParseError

MAX_DEPTH = 64
MAX_NODES = 50_000
"""Values of one body, at most. Objects and arrays cost a hundred times as much to walk as their bytes to receive."""
MAX_BATCH = 1_000
MAX_ID = 1_024
TAIL = b"}"

MAX_FLOAT_ID = 2**53
"""Up to here a float is the number that was sent; integers have 64 bits."""

Id = str | float | None
"""A number keeps its form, 1 or 1.0: some clients tell the two apart."""

# Possessive, and without the need of a closing quote: no body is scanned twice, whatever it holds.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
# An even number of backslashes before it stands for themselves.
_NUL = re.compile(rb"(?<!\\)(?:\\\\)*+\\u0000")
_BEGINNING = 4_096
"""Bytes of a body with too many values that are looked at for what else is wrong with it."""
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in b"[]{}")


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
    """The id of the call, null if it could not be read; UNSET for a notification, which is not answered."""
    error: Error
    source: Any = None
    """The member as it was parsed."""


Member = Call | BadCall


def parse(body: bytes) -> Member | list[Member]:
    """A single member, or the members of a batch. Raises ParseError and InvalidRequest for the whole body."""
    value = read_json(body)
    nul = holds_nul(body)
    if isinstance(value, list):
        if not value:
            raise InvalidRequest(detail="a batch must have at least one member")
        if len(value) > MAX_BATCH:
            raise InvalidRequest(detail=f"a batch may have {MAX_BATCH} members at most, not {len(value)}")
        return [_member(item, nul) for item in value]
    return _member(value, nul)


def read_json(body: bytes) -> Any:
    """Strict JSON no deeper than MAX_DEPTH, of MAX_NODES values: no NaN, no lone surrogates, UTF-8 without a byte order
    mark. Depth and number are counted in the bytes: walking costs a hundred times as much."""
    if _nodes(body) > MAX_NODES:
        if _without_pairs(body[:_BEGINNING]).count(b"[") > MAX_DEPTH:
            raise _too_deep()
        raise InvalidRequest(detail=f"the JSON may have {MAX_NODES} values; send files and tables as text or as bytes")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        # What orjson says beyond 1,024 levels.
        if "depth limit" in str(error):
            raise _too_deep() from None
        raise ParseError from None
    # Most bodies have fewer brackets than levels are allowed.
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH and _without_pairs(body):
        raise _too_deep()
    return value


def holds_nul(body: bytes) -> bool:
    """Return whether a string of the JSON holds U+0000."""
    return b"\\u0000" in body and _NUL.search(body) is not None


def _nodes(body: bytes) -> int:
    """Return how many values the JSON has, or some number below the limit."""
    if len(body) <= MAX_NODES or _marks(body) < MAX_NODES:
        return 0
    # Most of them may stand in texts.
    return _marks(_STRING.sub(b"", body)) + 1


def _marks(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


def _without_pairs(body: bytes) -> bytes:
    """Return the brackets that are left when the innermost pairs were taken away MAX_DEPTH times: none, if the JSON is
    valid and not too deep."""
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")
    return brackets


def head(rpc_id: Id) -> bytes:
    """Return the bytes before the result of a call that succeeded; TAIL stands behind it."""
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
    if not (rpc_id is UNSET or rpc_id is None or type(rpc_id) in (str, int)) and (wrong := _wrong_id(rpc_id)):
        return _bad(None, wrong)
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


def _wrong_id(rpc_id: Any) -> str | None:
    """Return the reason why a value that is no text and no integer cannot be an id. A number such as 1.0 can."""
    if not isinstance(rpc_id, float):
        return f"id must be a string or an integer, not {_kind(rpc_id)}"
    if abs(rpc_id) > MAX_FLOAT_ID:
        return "id must be sent as a string: this number is too large to be sent back exactly"
    return None if rpc_id.is_integer() else "id must be a string or an integer, not a fraction"


def nul_in(params: Any) -> InvalidParams | None:
    """Return the refusal of params that hold NUL, the one character that PostgreSQL cannot store; None without it."""
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


def path_of_nul(value: Any) -> str | None:
    """Return where the first U+0000 is, in a key or a string; the depth is bounded by read_json."""
    steps = _steps_to_nul(value)
    return None if steps is None else "".join(reversed(steps)).removeprefix(".")


def _steps_to_nul(value: Any) -> list[str] | None:
    """Return the last step first: a path is put together only for what is found."""
    if isinstance(value, str):
        return [] if "\0" in value else None
    if isinstance(value, dict):
        for key, child in value.items():
            if "\0" in key:
                return []
            if (steps := _steps_to_nul(child)) is not None:
                return [*steps, f".{key}"]
    elif isinstance(value, list):
        for index, child in enumerate(value):
            if (steps := _steps_to_nul(child)) is not None:
                return [*steps, f"[{index}]"]
    return None
