"""The choice of a call's language: by its path, the spelling of its method, its version, and the pin of its key.

A path leads to an endpoint. There the first row that fits the spelling decides. Among dialects of A2A the A2A-Version
header is heard first (docs/protocol.md#choosing-the-version).
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from a2a.envelopes import Envelope, Member
from a2a.envelopes.bare import ENVELOPE, form
from a2a.errors import Error, MethodNotFound, VersionNotSupported
from a2a.language import Dialect, Language, Method, Route

Spoken = TypeVar("Spoken", bound=Language)
_VERSION = re.compile(r"([0-9]+\.[0-9]+)(\.[0-9]+)?")


class Refused(Exception):
    """No method was chosen. The error is told in the language; None stands for neutral words."""

    def __init__(self, error: Error, language: Language | None = None) -> None:
        super().__init__(error.sentence)
        self.error = error
        self.language = language


Choose = Callable[[Any, Member, str | None, str | None], Language]
"""Picks one of the languages of a row for a call, its version, and the pin of its key. Raises Refused."""


class Row(Struct, frozen=True, kw_only=True):
    """A row of an endpoint: calls that fit the spelling are in one of these languages."""

    languages: tuple[Language, ...]
    choose: Choose
    spelling: re.Pattern[str] | None = None
    """The spelling of the method; None fits any."""


class Endpoint(Struct, frozen=True, kw_only=True):
    """Paths that share an envelope, and the languages that are spoken there."""

    name: str
    envelope: Envelope
    neutral: Language
    """The language of errors while none is chosen."""
    rows: tuple[Row, ...]
    """The table: a call is in the first row that fits."""
    paths: tuple[str, ...] = ()
    """Its paths at the root of the server and behind the address of an agent; a slash may follow. Without an envelope
    they are the prefixes of the routes."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes behind its paths; empty where an envelope names the method."""
        return form(self.neutral).routes if self.envelope is ENVELOPE else ()

    @property
    def segments(self) -> frozenset[str]:
        """The first segments of its paths at the root; empty text stands for the root itself."""
        places = [route.path for route in self.routes] or [""]
        return frozenset((path + place).removeprefix("/").split("/")[0] for path in self.paths for place in places)

    @property
    def languages(self) -> tuple[Language, ...]:
        """All languages of its rows."""
        return tuple(language for row in self.rows for language in row.languages)

    def choose(self, member: Member, version: str | None, pin: str | None = None) -> tuple[Language, Method]:
        """Return the language of a call, and its method. Raises Refused."""
        for row in self.rows:
            if row.spelling is None or row.spelling.fullmatch(member.method):
                language = row.choose(row.languages, member, version, pin)
                return language, language.methods[member.method]
        raise Refused(MethodNotFound())


def by_method(languages: Sequence[Language], member: Member, version: str | None, pin: str | None) -> Language:
    """Pick the pinned language, or else the first that has the method. Raises Refused."""
    chosen = _home(languages, member.method, pin)
    if chosen is None:
        raise Refused(MethodNotFound(), languages[0])
    return chosen


def by_version(dialects: Sequence[Dialect], member: Member, version: str | None, pin: str | None) -> Dialect:
    """Pick the dialect of the version; without one the pinned dialect, or else the newest that has the method.

    Raises Refused, in neutral words for an unknown method of no version.
    """
    if not version:
        if chosen := _home(dialects, member.method, pin):
            return chosen
        raise Refused(MethodNotFound())
    number = minor(version)
    for chosen in dialects:
        if chosen.version == number:
            if member.method not in chosen.methods:
                raise Refused(_elsewhere(_home(dialects, member.method), chosen), chosen)
            return chosen
    raise Refused(unsupported(version, dialects), dialects[0])


def by_version_of_path(dialects: Sequence[Dialect], member: Member, version: str | None, pin: str | None) -> Dialect:
    """Pick the dialect of the version among those of a path; without one the oldest. Raises Refused."""
    if not version:
        return dialects[-1]
    number = minor(version)
    for chosen in dialects:
        if chosen.version == number:
            return chosen
    raise Refused(unsupported(version, dialects), dialects[-1])


def _home(languages: Sequence[Spoken], method: str, pin: str | None = None) -> Spoken | None:
    """Return the pinned language if it has the method, or else the first that has it."""
    if pin is not None:
        for language in languages:
            if language.name == pin and method in language.methods:
                return language
    for language in languages:
        if method in language.methods:
            return language
    return None


def _elsewhere(home: Dialect | None, chosen: Dialect) -> MethodNotFound:
    """Return the refusal of a method. One that another version has is not unknown: the version is wrong."""
    if home is None:
        return MethodNotFound()
    return MethodNotFound(
        detail=f"it is a method of {home.version}, and by its A2A-Version this call is {chosen.version}"
    )


def unsupported(version: str, dialects: Sequence[Dialect]) -> VersionNotSupported:
    """Return the refusal of a version, which is cut and cleaned: it is echoed and recorded."""
    echo = "".join(letter for letter in version[:32] if letter.isprintable())
    spoken = ",".join(dialect.version for dialect in reversed(dialects))
    return VersionNotSupported(requestedVersion=echo, supportedVersions=spoken)


def minor(version: str) -> str | None:
    """Return Major.Minor of a version, which is all that counts; None if it does not look like one."""
    if len(version) > 32 or (match := _VERSION.fullmatch(version)) is None:
        return None
    return match[1]
