"""HTTP+JSON, which has no envelope: routes to methods, params from path, query and body, and what an error looks like.

It knows no method: the routes are data of the dialects (A2A 1.0, section 11; docs/protocol.md#rest-of-0x, #errors).
"""

import re
from collections.abc import Callable, Iterable
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Struct

from a2a import errors
from a2a.dialects import BY_VERSION, DIALECTS, minor, rest_0_x, unsupported, v1_0
from a2a.dialects.params import camel, numeral
from a2a.errors import Error, InvalidParams, MethodNotFound
from a2a.language import Dialect, Route
from a2a.types import Json

STATUSES: dict[type[Error], tuple[int, str]] = {
    errors.ParseError: (400, "INVALID_ARGUMENT"),
    errors.InvalidRequest: (400, "INVALID_ARGUMENT"),
    errors.MethodNotFound: (404, "NOT_FOUND"),
    errors.InvalidParams: (400, "INVALID_ARGUMENT"),
    errors.IdempotencyConflict: (400, "INVALID_ARGUMENT"),
    errors.Internal: (500, "INTERNAL"),
    errors.TaskNotFound: (404, "NOT_FOUND"),
    errors.TaskNotCancelable: (400, "FAILED_PRECONDITION"),
    errors.PushNotSupported: (400, "FAILED_PRECONDITION"),
    errors.UnsupportedOperation: (400, "FAILED_PRECONDITION"),
    errors.ContentTypeNotSupported: (400, "INVALID_ARGUMENT"),
    errors.InvalidAgentResponse: (500, "INTERNAL"),
    errors.ExtendedCardNotConfigured: (400, "FAILED_PRECONDITION"),
    errors.ExtensionSupportRequired: (400, "FAILED_PRECONDITION"),
    errors.VersionNotSupported: (400, "FAILED_PRECONDITION"),
    errors.UnknownAgent: (404, "NOT_FOUND"),
    errors.Unauthenticated: (401, "UNAUTHENTICATED"),
    errors.MissingScope: (403, "PERMISSION_DENIED"),
    errors.RateLimited: (429, "RESOURCE_EXHAUSTED"),
    errors.Unavailable: (503, "UNAVAILABLE"),
}
"""The HTTP status and the gRPC name of each error (docs/protocol.md#errors, the column of 1.0.1)."""
_REFUSALS = {405: "UNIMPLEMENTED", 408: "DEADLINE_EXCEEDED"}
"""Names of statuses that HTTP alone has; those of the others are the error's own."""


class NoSuchVerb(Exception):
    """The path is right, the verb is not."""

    def __init__(self, verb: str, allowed: str) -> None:
        super().__init__(f"use {allowed}, not {verb[:16]}")
        self.allowed = allowed


class Found(NamedTuple):
    """A route and what its path holds."""

    route: Route
    variables: dict[str, str]


class Family(Struct, frozen=True, kw_only=True):
    """The dialects that share a prefix of the path."""

    versions: tuple[str, ...]
    """The A2A-Versions that may be asked for under the prefix."""
    media: str
    """The type of its answers."""
    main: Dialect
    """The dialect of calls that name no version."""
    spoken: Callable[[Any, str | None], Dialect]
    """Its dialect of a body, under an A2A-Version."""
    encode_error: Callable[[Error, int | None], Json]


def find(family: Family, verb: str, path: str) -> Found:
    """Return the route that the path names. Raises MethodNotFound and NoSuchVerb."""
    places = [(route, match) for route in family.main.routes if (match := _pattern(route.path).fullmatch(path))]
    if not places:
        raise MethodNotFound(detail="there is nothing at this path")
    shape = _VARIABLE.sub("", places[0][0].path)
    here = [(route, match) for route, match in places if _VARIABLE.sub("", route.path) == shape]
    for route, match in here:
        if route.verb == verb:
            return Found(route, match.groupdict())
    raise NoSuchVerb(verb, ", ".join(sorted({route.verb for route, _ in here})))


_VARIABLE = re.compile(r"\{(\w+)\}")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Compile the template of a path. A variable may be empty: the decoder refuses it and names the field."""
    # What split gives are texts and names in turn.
    pieces = enumerate(_VARIABLE.split(template))
    return re.compile("".join(rf"(?P<{piece}>[^/]*)" if place % 2 else re.escape(piece) for place, piece in pieces))


def check_version(family: Family, version: str | None) -> None:
    """Raises VersionNotSupported for one that has another prefix, or none (docs/protocol.md#choosing-the-version)."""
    if version and minor(version) not in family.versions:
        raise unsupported(version, family.versions)


# ---------------------------------------------------------------------- params


def params_of(found: Found, given: dict[str, str], query: Iterable[tuple[str, str]], body: Any) -> Json:
    """The params of a call from the path, the query and the body, which must not contradict each other.

    Given is what the prefix says: the tenant. Raises InvalidParams.
    """
    if not isinstance(body, dict):
        raise InvalidParams(("body", "must be a JSON object"))
    params: Json = camel(body)
    asked = _queried(found.route.query, query)
    for source, members in (("path", given | found.variables), ("query", asked)):
        for name, value in members.items():
            there = params.get(name)
            if isinstance(value, str) and "\0" in value:
                raise InvalidParams((name, "must not hold the character U+0000"))
            if there not in (None, "", value):
                raise InvalidParams((name, f"is not the same in the {source} as in the rest of the call"))
            if there != value:
                # The body itself stays as it was sent.
                params = {**params, name: value}
    return params


def _queried(shape: type[Struct] | None, query: Iterable[tuple[str, str]]) -> Json:
    """The members of the query that the shape knows, typed; others are nobody's. Raises InvalidParams."""
    members = _members(shape) if shape else {}
    asked: Json = {}
    for name, text in query:
        if name in members:
            field, kinds = members[name]
            if field in asked:
                raise InvalidParams((field, "is in the query more than once"))
            asked[field] = _typed(text, kinds, field)
    return asked


@cache
def _members(shape: type[Struct]) -> dict[str, tuple[str, frozenset[type]]]:
    """Plain members by both of their names: ProtoJSON parsers must take snake_case too."""
    found = {}
    for field in msgspec.structs.fields(shape):
        kinds = frozenset(_kinds(field.type)) & {str, int, bool}
        if kinds:
            found[field.encode_name] = found[field.name] = (field.encode_name, kinds)
    return found


def _kinds(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)


def _typed(text: str, kinds: frozenset[type], field: str) -> Any:
    """Return the text of a query as one of the types that its field may have."""
    if int in kinds and (number := numeral(text)) is not None:
        # As JSON is read: what has no place in 64 bits is a float.
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    if str in kinds:
        return text
    raise InvalidParams((field, "must be an integer" if int in kinds else "must be true or false"))


# ---------------------------------------------------------------------- errors


def status_of(error: Error) -> tuple[int, str]:
    """The HTTP status and the gRPC name."""
    for ancestor in type(error).__mro__:
        if ancestor in STATUSES:
            return STATUSES[ancestor]
    raise LookupError(f"{type(error).__name__} has no HTTP status: add it to the table")


def encode_error(error: Error, status: int | None = None) -> Json:
    """The body of an error; HTTP may have a status of its own for it."""
    own, name = status_of(error)
    detail = error.facts.get("detail")
    return {
        "error": {
            "code": status or own,
            "status": _REFUSALS.get(status or own, name),
            "message": f"{error.message}: {detail}" if detail else error.message,
            "details": v1_0.error_details(error),
        }
    }


def encode_old_error(error: Error, status: int | None = None) -> Json:
    """Return the body of an error in 0.x: beside the error, the code, message and class name that the official clients
    of 0.3 look for.
    """
    body = encode_error(error, status)
    kind = error.reason.title().replace("_", "") + "Error"
    return body | {"code": rest_0_x.PROTO.code(error), "message": body["error"]["message"], "type": kind}


def _speaking(main: Dialect) -> tuple[str, ...]:
    """The versions that have its methods, the newest first: no name is of two generations."""
    return tuple(dialect.version for dialect in DIALECTS if dialect.methods.keys() & main.methods.keys())


def _spoken(version: str | None) -> Dialect:
    """The dialect of 1.0 or of what came after it; bodies do not differ."""
    return BY_VERSION[version] if version in NEW.versions else v1_0.DIALECT


NEW = Family(
    versions=_speaking(v1_0.DIALECT),
    media="application/a2a+json",
    main=v1_0.DIALECT,
    spoken=lambda body, version: _spoken(minor(version or "")),
    encode_error=encode_error,
)
OLD = Family(
    versions=_speaking(rest_0_x.PROTO),
    media="application/json",
    main=rest_0_x.PROTO,
    spoken=lambda body, version: rest_0_x.spoken(body, minor(version or "")),
    encode_error=encode_old_error,
)
"""Under /v1/."""

WORDS = frozenset(route.path.split("/")[1] for route in NEW.main.routes)
"""The first words of the paths of 1.0, after their prefix."""
