"""The wire languages, one a file, and the choice among those of A2A.

choose() knows a call by its method and the A2A-Version header (docs/protocol.md#choosing-the-version); it refuses
in the words of the chosen dialect, or in neutral ones that every version can read.
"""

import re

from msgspec.structs import replace

from a2a.dialects import rest_0_x, v0_2, v0_3, v1_0
from a2a.errors import Error, InvalidParams, MethodNotFound, VersionNotSupported
from a2a.language import Dialect, Method
from a2a.types import Json

DIALECTS: tuple[Dialect, ...] = (v1_0.DIALECT, v0_3.DIALECT, v0_2.DIALECT)
"""The newest first: without a header the first that has the method is meant; the names of 1.0 and 0.x never overlap.
All that goes by version follows from these."""
VERSIONS = tuple(dialect.version for dialect in DIALECTS if dialect.on_cards)
"""Versions that cards list (docs/protocol.md#cards)."""

BY_NAME = {dialect.name: dialect for dialect in (*DIALECTS, rest_0_x.KIND, rest_0_x.PROTO)}
"""Dialects by the name that exchanges record, REST included."""

BY_VERSION = {dialect.version: dialect for dialect in DIALECTS}
_VERSION = re.compile(r"([0-9]+\.[0-9]+)(\.[0-9]+)?")


class Refused(Exception):
    """No method was chosen. The dialect is the one to say it in; None for neutral words."""

    def __init__(self, error: Error, dialect: Dialect | None = None) -> None:
        super().__init__(error.sentence)
        self.error = error
        self.dialect = dialect

    def json(self) -> Json:
        """The JSON-RPC error object."""
        return neutral(self.error) if self.dialect is None else self.dialect.error(self.error)


def choose(method: str, version: str | None) -> tuple[Dialect, Method]:
    """Who speaks, and what is meant; the version is the header's or the query's. Raises Refused."""
    if not version:
        if home := _home(method):
            return home, home.methods[method]
        raise Refused(MethodNotFound())
    chosen = BY_VERSION.get(minor(version) or "")
    if chosen is None:
        raise Refused(unsupported(version), v1_0.DIALECT)
    if method not in chosen.methods:
        raise Refused(_elsewhere(_home(method), chosen), chosen)
    return chosen, chosen.methods[method]


def _home(method: str) -> Dialect | None:
    """The newest version that has the method."""
    return next((dialect for dialect in DIALECTS if method in dialect.methods), None)


def _elsewhere(home: Dialect | None, chosen: Dialect) -> MethodNotFound:
    """A method that another version has is not unknown: the version is wrong."""
    if home is None:
        return MethodNotFound()
    return MethodNotFound(
        detail=f"it is a method of {home.version}, and by its A2A-Version this call is {chosen.version}"
    )


def unsupported(version: str, supported: tuple[str, ...] = tuple(BY_VERSION)) -> VersionNotSupported:
    """Return the error for a version. The version is cut and cleaned, because the error repeats it and is recorded."""
    asked = "".join(letter for letter in version[:32] if letter.isprintable())
    return VersionNotSupported(requestedVersion=asked, supportedVersions=",".join(reversed(supported)))


def minor(version: str) -> str | None:
    """Major.Minor of a version, which is all that counts; None if it does not look like one."""
    if len(version) > 32 or (found := _VERSION.fullmatch(version)) is None:
        return None
    return found[1]


def neutral(error: Error) -> Json:
    """The error object before the dialect is known: code and message only, which all versions share."""
    return _NEUTRAL.error(error)


def _encode_neutral(error: Error, code: int) -> Json:
    details = [error.facts["detail"]] if "detail" in error.facts else []
    if "reference" in error.facts:
        details.append(f"reference {error.facts['reference']}")
    if isinstance(error, InvalidParams):
        details += [f"{field} {description}" for field, description in error.violations]
    message = f"{error.sentence}: {'; '.join(details)}" if details else error.sentence
    return {"code": code, "message": message}


_NEUTRAL = replace(v1_0.DIALECT, name="neutral", encode_error=_encode_neutral)
