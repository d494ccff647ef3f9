"""Calls without an envelope: verb and path name the method; path, query and body are the params (A2A 1.0, section 11).

The routes are data of the languages. A result is the whole answer, and an error has the HTTP status of the language.
"""

import re
from collections.abc import Collection, Iterable
from functools import cache
from types import UnionType
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
import orjson
from msgspec import Struct

from a2a.envelopes import Envelope, Failure, Id, Member
from a2a.envelopes.body import read_json
from a2a.errors import Error, InvalidParams, MethodNotFound
from a2a.language import Language, Rest, Route, entry
from a2a.mismatches import list_choices
from a2a.params import camel_names, read_number
from a2a.types import Json

_REFUSALS = {403: "PERMISSION_DENIED", 405: "UNIMPLEMENTED", 408: "DEADLINE_EXCEEDED"}
"""The gRPC names of statuses that go before those of the error."""


class NoSuchVerb(Exception):
    """The path exists, but not with this verb. `verbs` is the value of the Allow header."""

    def __init__(self, verb: str, verbs: str) -> None:
        super().__init__(f"use {verbs}, not {verb[:16]}")
        self.verbs = verbs


class Place(NamedTuple):
    """A route and the variables of its path."""

    route: Route
    variables: dict[str, str]


def find(routes: Collection[Route], verb: str, path: str) -> Place:
    """Return the route of a verb and a path. Raises MethodNotFound and NoSuchVerb."""
    places = [(route, match) for route in routes if (match := _pattern(route.path).fullmatch(path))]
    if not places:
        raise MethodNotFound(detail="there is nothing at this path")
    template = _VARIABLE.sub("", places[0][0].path)
    here = [(route, match) for route, match in places if _VARIABLE.sub("", route.path) == template]
    for route, match in here:
        if route.verb == verb:
            return Place(route, match.groupdict())
    if actions := _actions(routes, here[0][0].path, path):
        raise MethodNotFound(detail=f"there is nothing at this path; behind the id it may have {list_choices(actions)}")
    raise NoSuchVerb(verb, ", ".join(sorted({route.verb for route, _ in here})))


def _actions(routes: Collection[Route], template: str, path: str) -> list[str]:
    """Return the actions of a path that ends with another one, such as `:stop`, which its template takes for an id."""
    if ":" not in path.rpartition("/")[2]:
        return []
    return sorted({route.path.removeprefix(template) for route in routes if route.path.startswith(f"{template}:")})


_VARIABLE = re.compile(r"\{(\w+)\}")


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Compile the template of a path. A variable may be empty: the decoder refuses it and names the field."""
    # The pieces are texts and names of variables, alternately.
    pieces = enumerate(_VARIABLE.split(template))
    return re.compile("".join(rf"(?P<{piece}>[^/]*)" if place % 2 else re.escape(piece) for place, piece in pieces))


# ---------------------------------------------------------------------- params


def params_of(place: Place, prefix: dict[str, str], query: Iterable[tuple[str, str]], body: Any) -> Json:
    """Return the params of a call from the path, the query and the body, which must not contradict each other.

    `prefix` has the params from the part of the path before the route, such as the tenant. Raises InvalidParams.
    """
    if not isinstance(body, dict):
        raise InvalidParams(("body", "must be a JSON object"))
    params: Json = camel_names(body) if place.route.camel else body
    query_params = _read_query(place.route.query, query)
    for source, members in (("path", prefix | place.variables), ("query", query_params)):
        for name, value in members.items():
            other = params.get(name)
            if isinstance(value, str) and "\0" in value:
                raise InvalidParams((name, "must not hold the character U+0000"))
            if other not in (None, "", value):
                raise InvalidParams((name, f"is not the same in the {source} as in the rest of the call"))
            if other != value:
                # A copy: the body is recorded as it was sent.
                params = {**params, name: value}
    return params


def _read_query(struct: type[Struct] | None, query: Iterable[tuple[str, str]]) -> Json:
    """Return the params in the query, with the types of the struct. Names that the struct lacks are ignored.

    Raises InvalidParams for a value of the wrong type and for a name that comes twice.
    """
    members = plain_members(struct) if struct else {}
    params: Json = {}
    for name, text in query:
        if name in members:
            field, kinds = members[name]
            if field in params:
                raise InvalidParams((field, "is in the query more than once"))
            params[field] = _read_text(text, kinds, field)
    return params


@cache
def plain_members(struct: type[Struct]) -> dict[str, tuple[str, frozenset[type]]]:
    """Return the plain members of a struct, by camelCase and by snake_case name, as ProtoJSON parsers accept both."""
    members = {}
    for field in msgspec.structs.fields(struct):
        kinds = frozenset(_kinds(field.type)) & {str, int, bool}
        if kinds:
            members[field.encode_name] = members[field.name] = (field.encode_name, kinds)
    return members


def _kinds(kind: Any) -> tuple[Any, ...]:
    if get_origin(kind) is Annotated:
        return _kinds(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return tuple(inner for member in get_args(kind) for inner in _kinds(member))
    return (kind,)


def _read_text(text: str, kinds: frozenset[type], field: str) -> Any:
    """Return the value of a text in the query, of one of its field's types. Raises InvalidParams."""
    if int in kinds and (number := read_number(text)) is not None:
        # A number beyond 64 bits is a float, as in a JSON body.
        return int(number) if number.is_integer() and abs(number) < 2**63 else number
    if bool in kinds and text in ("true", "false"):
        return text == "true"
    if str in kinds:
        return text
    raise InvalidParams((field, "must be an integer" if int in kinds else "must be true or false"))


# -------------------------------------------------------------------- envelope


def parse(body: bytes) -> Member:
    """Parse the recorded params of a call, which do not name its method. Raises ParseError and InvalidRequest."""
    params = read_json(body)
    return Member(id=None, method="", params=params, source=params)


def failure(rpc_id: Id, error: Error, language: Language, status: int | None = None) -> Failure:
    """Encode the body of an error. A status, if there is one, takes the place of the language's own."""
    rest = form(language)
    number, name = entry(rest.statuses, error, "HTTP status")
    status = status or number
    wire = rest.encode_error(error, status, _REFUSALS.get(status, name))
    return Failure(orjson.dumps(wire), language.code(error), status)


def form(language: Language) -> Rest:
    """Return the form of a language over REST. Raises LookupError if it has none."""
    if language.rest is None:
        raise LookupError(f"{language.name} is always in an envelope")
    return language.rest


ENVELOPE = Envelope(
    name="bare", parse=parse, head=lambda rpc_id: b"", failure=failure, media=lambda language: form(language).media
)
