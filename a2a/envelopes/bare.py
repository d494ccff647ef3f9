"""No envelope: verb and path name the method; path, query and body are the params (A2A 1.0, section 11).

The routes are data of the languages. Answers are sent as they are; an error has the HTTP status of the language.
"""

import re
from collections.abc import Iterable
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec
import orjson
from msgspec import Struct

from a2a.dialects.params import camel, numeral
from a2a.envelopes import Envelope, Failure, Id, Member
from a2a.envelopes.body import read_json
from a2a.errors import Error, InvalidParams, MethodNotFound, entry
from a2a.language import Language, Rest, Route
from a2a.types import Json

_REFUSALS = {405: "UNIMPLEMENTED", 408: "DEADLINE_EXCEEDED"}
"""Names of statuses that HTTP alone has; those of the others are the error's own."""


class NoSuchVerb(Exception):
    """The path exists, but not with this verb."""

    def __init__(self, verb: str, allowed: str) -> None:
        super().__init__(f"use {allowed}, not {verb[:16]}")
        self.allowed = allowed


class Place(NamedTuple):
    """A route and the variables of its path."""

    route: Route
    variables: dict[str, str]


def find(routes: Iterable[Route], verb: str, path: str) -> Place:
    """Return the route that the path names. Raises MethodNotFound and NoSuchVerb."""
    places = [(route, match) for route in routes if (match := _pattern(route.path).fullmatch(path))]
    if not places:
        raise MethodNotFound(detail="there is nothing at this path")
    template = _VARIABLE.sub("", places[0][0].path)
    here = [(route, match) for route, match in places if _VARIABLE.sub("", route.path) == template]
    for route, match in here:
        if route.verb == verb:
            return Place(route, match.groupdict())
    raise NoSuchVerb(verb, ", ".join(sorted({route.verb for route, _ in here})))


_VARIABLE = re.compile(r"\{(\w+)\}")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Compile the template of a path. A variable may be empty: the decoder refuses it and names the field."""
    # What split gives are texts and names in turn.
    pieces = enumerate(_VARIABLE.split(template))
    return re.compile("".join(rf"(?P<{piece}>[^/]*)" if place % 2 else re.escape(piece) for place, piece in pieces))


# ---------------------------------------------------------------------- params


def params_of(place: Place, given: dict[str, str], query: Iterable[tuple[str, str]], body: Any) -> Json:
    """Return the params of a call from the path, the query and the body, which must not contradict each other.

    The prefix gives the tenant. Raises InvalidParams.
    """
    if not isinstance(body, dict):
        raise InvalidParams(("body", "must be a JSON object"))
    params: Json = camel(body)
    asked = _queried(place.route.query, query)
    for source, members in (("path", given | place.variables), ("query", asked)):
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


def _queried(struct: type[Struct] | None, query: Iterable[tuple[str, str]]) -> Json:
    """Return the members of the query that the struct has, typed; others are ignored. Raises InvalidParams."""
    members = _members(struct) if struct else {}
    asked: Json = {}
    for name, text in query:
        if name in members:
            field, kinds = members[name]
            if field in asked:
                raise InvalidParams((field, "is in the query more than once"))
            asked[field] = _typed(text, kinds, field)
    return asked


@cache
def _members(struct: type[Struct]) -> dict[str, tuple[str, frozenset[type]]]:
    """Return plain members by both of their names: ProtoJSON parsers must take snake_case too."""
    found = {}
    for field in msgspec.structs.fields(struct):
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


# -------------------------------------------------------------------- envelope


def parse(body: bytes) -> Member:
    """Return the params of a recorded call, whose method is not among them. Raises ParseError and InvalidRequest."""
    params = read_json(body)
    return Member(id=None, method="", params=params, source=params)


def failure(rpc_id: Id, error: Error, language: Language, status: int | None = None) -> Failure:
    """Return the body of an error; HTTP may have a status of its own for it."""
    rest = form(language)
    number, name = entry(rest.statuses, error, "HTTP status")
    status = status or number
    wire = rest.encode_error(error, status, _REFUSALS.get(status, name))
    return Failure(orjson.dumps(wire), language.code(error), status)


def form(language: Language) -> Rest:
    """Return how the language is without an envelope. Raises LookupError."""
    if language.rest is None:
        raise LookupError(f"{language.name} is always in an envelope")
    return language.rest


ENVELOPE = Envelope(
    name="bare", parse=parse, head=lambda rpc_id: b"", failure=failure, media=lambda language: form(language).media
)
