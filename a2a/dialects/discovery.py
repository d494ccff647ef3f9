"""The language of `rpc.discover`, by which a call asks what it can ask (OpenRPC 1.3, Service Discovery).

Its errors have only a code and a message, which all versions of A2A share.
"""

import re
from typing import Any

from msgspec import Struct

from a2a.answers import Description
from a2a.choice import Row, by_method
from a2a.dialects.errors_1_0 import COLUMN
from a2a.errors import Error, InvalidParams
from a2a.language import Language, Method
from a2a.params import check, or_empty
from a2a.requests import Describe
from a2a.types import Json


class NoParams(Struct):
    pass


class Document(Struct):
    """A description in OpenRPC."""

    openrpc: str
    info: Json
    methods: list[Json]


class Fault(Struct):
    """An error without data."""

    code: int
    message: str


def decode(params: Any) -> Describe:
    """Decode the params of rpc.discover, which has none. Raises InvalidParams."""
    check(or_empty(params), NoParams)
    return Describe()


def encode(description: Description) -> bytes:
    """Return the description, which is JSON already."""
    return description.body


def encode_error(error: Error, code: int) -> Json:
    """Return an error object of the code and the message, which all versions have."""
    message = error.full_message
    if isinstance(error, InvalidParams) and error.violations:
        message = f"{error.sentence}: {'; '.join(' '.join(violation) for violation in error.violations)}"
    return {"code": code, "message": message}


LANGUAGE = Language(
    name="openrpc",
    methods={"rpc.discover": Method(request=Describe, decode=decode, encode=encode, params=NoParams, result=Document)},
    column=COLUMN,
    encode_error=encode_error,
    error_type=Fault,
    encode_frame=lambda frame, history_length: None,
)
ROW = Row(languages=(LANGUAGE,), choose=by_method, spelling=re.compile(r"rpc\..*", re.DOTALL))
"""The first row of an endpoint: all names that begin with `rpc.` are reserved (JSON-RPC 2.0, section 8)."""
