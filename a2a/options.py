"""The options of @agent: their types, valid values and defaults."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

from msgspec import Struct

from a2a.canonical import canonical
from a2a.extensions import is_uri
from a2a.media import DEFAULT, is_mode
from a2a.money import is_cost
from a2a.types import Extension, Message, Privacy, Skill
from a2a.workflows import Phase

YEAR, HOUR = 31_536_000, 3600
TRANSIENT = (ConnectionError, TimeoutError)
"""Exceptions that lead to another attempt by default."""
LEAST_MEMORY = 16_000_000
"""The least memory limit in bytes. With less, a child process cannot report its own error."""
NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")
"""The pattern of an agent's or a queue's name."""


class Options(TypedDict, total=False):
    """The keyword arguments of @agent. The fields of a2a.agents.Agent describe them."""

    name: str
    description: str
    skills: Sequence[str | Skill]
    timeout: float
    attempts: int
    retry_on: Sequence[type[Exception]]
    backoff: float
    queue: str
    priority: int
    concurrency: int
    scopes: Sequence[str]
    quick: bool | Callable[[Message], bool]
    isolation: Literal["", "process"]
    memory: int | None
    cost: Any
    max_latency: float | None
    max_input_tokens: int | None
    max_output_tokens: int | None
    privacy: Privacy | None
    version: str
    listed: bool
    phases: Sequence[str]
    failures_as_results: bool
    extensions: Sequence[str | Extension]
    input_modes: Sequence[str]
    output_modes: Sequence[str]


def _name(value: Any) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value < float("inf")


def _whole(value: Any, lowest: int, highest: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and lowest <= value <= highest


def _tokens(value: Any) -> bool:
    return value is None or _whole(value, 1, 2**53)


def _list(value: Any, kinds: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(item, kinds) and item for item in value)


def _skills(value: Any) -> bool:
    if not _list(value, str | Skill):
        return False
    ids = [item if isinstance(item, str) else item.id for item in value]
    return all(ids) and len(set(ids)) == len(ids)


def _phases(value: Any) -> bool:
    return _list(value, str) and set(value) <= set(Phase) and len(set(value)) == len(value)


def _modes(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) > 0 and all(map(is_mode, value))


def _exceptions(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(v, type) and issubclass(v, Exception) for v in value)


def _extensions(value: Any) -> bool:
    if not _list(value, str | Extension):
        return False
    uris = [item if isinstance(item, str) else item.uri for item in value]
    return all(map(is_uri, uris)) and len(set(uris)) == len(uris) and _has_canonical_form(value)


def _has_canonical_form(extensions: Any) -> bool:
    """Return whether the extensions have a canonical form (RFC 8785). A card without one cannot be signed."""
    try:
        canonical({item.uri: [item.description, item.params] for item in extensions if isinstance(item, Extension)})
    except ValueError:
        return False
    return True


class Option(Struct, frozen=True):
    """An option of @agent."""

    default: Any
    fits: Callable[[Any], bool]
    """Returns whether a value is valid."""
    words: str
    """The words for valid values, for error messages."""


_COUNT_WORDS = "a whole number above 0"
_MODE_WORDS = "a list of media types such as text/plain, image/* or */*, in lower case and without parameters"
NAME_WORDS = "lower-case letters, digits and hyphens, beginning with a letter, at most 64"
OPTIONS: dict[str, Option] = {
    "name": Option(None, lambda v: v is None or _name(v), NAME_WORDS),
    "description": Option(None, lambda v: v is None or (isinstance(v, str) and v.strip() != ""), "a sentence"),
    "skills": Option((), _skills, "a list of skill ids or Skill values, each with an id of its own"),
    "timeout": Option(
        300.0, lambda v: _number(v) and 0 < v <= YEAR, f"a number of seconds above 0, at most {YEAR} (a year)"
    ),
    "attempts": Option(1, lambda v: _whole(v, 1, 100), "a whole number from 1 to 100"),
    "retry_on": Option(TRANSIENT, _exceptions, "a list of exception classes, such as [ConnectionError]"),
    "backoff": Option(1.0, lambda v: _number(v) and 0 <= v <= HOUR, f"a number of seconds from 0 to {HOUR} (an hour)"),
    "queue": Option("default", _name, "a lower-case name"),
    "priority": Option(0, lambda v: _whole(v, -1000, 1000), "a whole number from -1000 to 1000"),
    "concurrency": Option(0, lambda v: _whole(v, 0, 100_000), "a whole number from 0 (no limit) to 100000"),
    "scopes": Option((), lambda v: _list(v, str), "a list of scope names"),
    "quick": Option(False, lambda v: isinstance(v, bool) or callable(v), "True, False or a function of the message"),
    "isolation": Option("", lambda v: v in ("", "process"), '"process", or left out'),
    "memory": Option(
        None, lambda v: v is None or _whole(v, LEAST_MEMORY, 2**60), f"a number of bytes, at least {LEAST_MEMORY:_}"
    ),
    "cost": Option(
        None, is_cost, 'a pair of amounts in dollars (minimum, maximum) such as ("0.01", "0.20"), or one amount above 0'
    ),
    "max_latency": Option(
        None, lambda v: v is None or (_number(v) and 0 < v <= HOUR), f"a number of seconds above 0, at most {HOUR}"
    ),
    "max_input_tokens": Option(None, _tokens, _COUNT_WORDS),
    "max_output_tokens": Option(None, _tokens, _COUNT_WORDS),
    "privacy": Option(
        None, lambda v: v is None or isinstance(v, Privacy), "a Privacy value, such as Privacy(pii=False, phi=False)"
    ),
    "version": Option("1.0.0", lambda v: isinstance(v, str) and v != "", "a version such as 1.0.0"),
    "listed": Option(True, lambda v: isinstance(v, bool), "True or False"),
    "failures_as_results": Option(False, lambda v: isinstance(v, bool), "True or False"),
    "phases": Option((), _phases, f"a list of different phases of {', '.join(Phase)}"),
    "extensions": Option((), _extensions, "a list of different absolute URIs or Extension values, without commas"),
    "input_modes": Option(DEFAULT, _modes, _MODE_WORDS),
    "output_modes": Option(DEFAULT, _modes, _MODE_WORDS),
}
