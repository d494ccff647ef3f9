"""The choice of a call's language: by its path, the spelling of its method, its version, and the pin of its key.

A path belongs to an endpoint. The first row of the endpoint that matches the spelling of the method chooses. Among the
dialects of A2A, the A2A-Version header comes before the pin (docs/protocol.md#choosing-the-version).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from msgspec import UNSET, Struct

from a2a.envelopes import AnyMember, BadMember, Envelope, Member
from a2a.envelopes.bare import ENVELOPE, form
from a2a.errors import Error, InvalidRequest, MethodNotFound, VersionNotSupported
from a2a.language import Dialect, Language, Method, Route
from a2a.mismatches import list_choices

AnyLanguage = TypeVar("AnyLanguage", bound=Language)
LISTED = "rpc.discover lists the methods"
"""The detail of the refusal of an unknown method."""
_VERSION = re.compile(r"([0-9]+\.[0-9]+)(\.[0-9]+)?")


class CallError(Exception):
    """A refusal of a call before its operation, with the language of the error; None for the neutral one."""

    def __init__(self, error: Error, language: Language | None = None) -> None:
        super().__init__(error.sentence)
        self.error = error
        self.language = language


Choose = Callable[[Any, Member, str | None, str | None], Language]
"""Chooses one of a row's languages for a call, its A2A-Version, and the pin of its key. Raises CallError."""


class Row(Struct, frozen=True, kw_only=True):
    """A row of an endpoint: calls whose method has the spelling are in one of these languages."""

    languages: tuple[Language, ...]
    choose: Choose
    spelling: re.Pattern[str] | None = None
    """The spelling of the method; None for any spelling."""

    def takes(self, method: str) -> bool:
        """Return whether calls of the method belong to the row."""
        return self.spelling is None or self.spelling.fullmatch(method) is not None


class Endpoint(Struct, frozen=True, kw_only=True):
    """Paths that share an envelope, and the languages at these paths."""

    name: str
    envelope: Envelope
    neutral: Language
    """The language of errors before one is chosen."""
    rows: tuple[Row, ...]
    """The rows. The first one that matches a call chooses its language."""
    paths: tuple[str, ...] = ()
    """The paths below the root of the server and below the address of each agent. A slash may follow. Without an
    envelope they are the prefixes of the routes."""
    body_setting: str = "A2A_BODY_BYTES"
    """The setting with the most bytes of a body at its paths. `A2A_BODY_BYTES` limits all endpoints."""
    has_openrpc: bool = True
    """False if OpenRPC cannot describe its calls, because their methods are the names of agents and skills."""

    @property
    def routes(self) -> tuple[Route, ...]:
        """The routes below its paths; empty if an envelope names the method."""
        return form(self.neutral).routes if self.envelope is ENVELOPE else ()

    @property
    def segments(self) -> frozenset[str]:
        """The first segments of its paths below the root. The empty string is the root itself."""
        places = [route.path for route in self.routes] or [""]
        return frozenset((path + place).removeprefix("/").split("/")[0] for path in self.paths for place in places)

    @property
    def languages(self) -> tuple[Language, ...]:
        """All languages of its rows."""
        return tuple(language for row in self.rows for language in row.languages)

    def require_id(self, member: AnyMember) -> AnyMember:
        """Return the member, or a bad one if it lacks the id that its language needs."""
        if member.id is not UNSET or not isinstance(member, Member):
            return member
        if not self._home(member.method).needs_id:
            return member
        error = InvalidRequest(detail="id is required: a call of this method is always answered")
        return BadMember(id=None, error=error, method=member.method, source=member.source)

    def choose(self, member: Member, version: str | None, pin: str | None = None) -> tuple[Language, Method]:
        """Return the language of a call, and its method. Raises CallError."""
        for row in self.rows:
            if row.takes(member.method):
                language = row.choose(row.languages, member, version, pin)
                if language.is_closed:
                    self._check_closed(member, language)
                return language, language.methods[member.method]
        raise CallError(MethodNotFound())

    def early(self, methods: Iterable[str], pin: str | None = None) -> Language | None:
        """Return the language of a refusal before a language is chosen; None for the neutral one.

        It is the one that all methods are spelled in. If no method can be read, it is the pin of the caller's key.
        """
        spellings = {method for method in methods if method}
        homes = [self._home(method, pin) for method in spellings] or [own for own in self.languages if own.name == pin]
        if len({home.name for home in homes}) != 1 or not homes[0].answers_early:
            return None
        return homes[0]

    def _home(self, method: str, pin: str | None = None) -> Language:
        """Return the language with the method, of the row that its spelling belongs to: the pinned one if it has the
        method. For a method that none has it is the pinned one too, or else the first."""
        languages = next((row.languages for row in self.rows if row.takes(method)), (self.neutral,))
        pinned = [language for language in languages if language.name == pin]
        return _find_home(languages, method, pin) or [*pinned, *languages][0]

    def _check_closed(self, member: Member, language: Language) -> None:
        """Check the envelope of a call in a language that allows no more members. Raises CallError."""
        try:
            self.envelope.check_closed(member)
        except InvalidRequest as error:
            raise CallError(error, language) from None


def by_method(languages: Sequence[Language], member: Member, version: str | None, pin: str | None) -> Language:
    """Return the pinned language, or else the first that has the method. Raises CallError."""
    language = _find_home(languages, member.method, pin)
    if language is None:
        raise CallError(_unknown_method(member.method, languages), languages[0])
    return language


def by_version(dialects: Sequence[Dialect], member: Member, version: str | None, pin: str | None) -> Dialect:
    """Return the dialect of the version; of several, the pinned one or the first with the method. Without a version,
    return the pinned dialect or the newest with the method.

    Raises CallError. Without a version, an unknown method is refused in the words of a pin that answers early, or in
    neutral ones.
    """
    if not version:
        if home := _find_home(dialects, member.method, pin):
            return home
        early = [dialect for dialect in dialects if dialect.name == pin and dialect.answers_early]
        raise CallError(_unknown_method(member.method, dialects), early[0] if early else None)
    number = minor(version)
    of_version = [dialect for dialect in dialects if dialect.version == number]
    if home := _find_home(of_version, member.method, pin):
        return home
    if of_version:
        raise CallError(_method_error(member.method, of_version[0], dialects), of_version[0])
    raise CallError(version_error(version, dialects), dialects[0])


def by_version_of_path(dialects: Sequence[Dialect], member: Member, version: str | None, pin: str | None) -> Dialect:
    """Return the dialect of the version among those of a path, without a version the oldest. Raises CallError."""
    if not version:
        return dialects[-1]
    number = minor(version)
    for dialect in dialects:
        if dialect.version == number:
            return dialect
    raise CallError(version_error(version, dialects), dialects[-1])


def _find_home(languages: Sequence[AnyLanguage], method: str, pin: str | None = None) -> AnyLanguage | None:
    """Return the pinned language if it has the method, or else the first that has the method, or None."""
    if pin is not None:
        for language in languages:
            if language.name == pin and method in language.methods:
                return language
    for language in languages:
        if method in language.methods:
            return language
    return None


def _unknown_method(method: str, languages: Sequence[Language]) -> MethodNotFound:
    """Return the error for a method that no language has. It gives a name that is nearly the same, if there is one."""
    spelling = method.casefold()
    names = [name for language in languages for name in language.methods]
    for name in names:
        if name.casefold() == spelling:
            return MethodNotFound(detail=f"it is spelled {name}")
    near = [name for name in names if _is_near(name.casefold(), spelling)]
    return MethodNotFound(detail=f"did you mean {near[0]}? {LISTED}" if near else LISTED)


def _is_near(name: str, other: str) -> bool:
    """Return whether two names differ only in one place, in at most two letters.

    A stranger may choose one of them, so this takes a step for each letter. A measure of similarity takes one for each
    pair of letters.
    """
    if abs(len(name) - len(other)) > 2:
        return False
    start = _count_equal(name, other)
    end = _count_equal(name[start:][::-1], other[start:][::-1])
    return max(len(name), len(other)) - start - end <= 2


def _count_equal(text: str, other: str) -> int:
    """Return the number of letters with which both texts begin."""
    pairs = zip(text, other, strict=False)
    return next((n for n, (one, two) in enumerate(pairs) if one != two), min(len(text), len(other)))


def _method_error(method: str, dialect: Dialect, dialects: Sequence[Dialect]) -> MethodNotFound:
    """Return the error for a method that a dialect lacks. It names the home of the method, the dialect that has it."""
    home = _find_home(dialects, method)
    if home is None:
        return _unknown_method(method, [dialect])
    return MethodNotFound(
        detail=f"it is a method of {home.name}, and by its A2A-Version this call is in {dialect.name}"
    )


def version_error(version: str, dialects: Sequence[Dialect]) -> VersionNotSupported:
    """Return the error for a version that none of the dialects has.

    The error is sent back and recorded, so it contains only 32 printable characters of the version.
    """
    echo = "".join(letter for letter in version[:32] if letter.isprintable())
    versions = list(dict.fromkeys(dialect.version for dialect in reversed(dialects)))
    detail = f"the A2A-Version must be {list_choices(versions)} here, not {echo}"
    return VersionNotSupported(requestedVersion=echo, supportedVersions=",".join(versions), detail=detail)


def minor(version: str) -> str | None:
    """Return Major.Minor of a version, since the patch digit is ignored (A2A 1.0, 3.6); None for a malformed one."""
    if len(version) > 32 or (match := _VERSION.fullmatch(version)) is None:
        return None
    return match[1]
