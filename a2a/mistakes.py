"""Mistakes in the code of an agent: sentences with file, line and name for its author. Callers never see them."""

import inspect
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import Any

from msgspec import UNSET

from a2a.types import Part

HERE = Path(__file__).parent
CHOICES = "give text, bytes, JSON data, a Part, an Artifact, or what run.status, run.ask and their like make"

_MEMBERS: dict[str, type | tuple[type, ...]] = {
    "text": str,
    "url": str,
    "filename": str,
    "media_type": str,
    "name": str,
    "description": str,
    "metadata": dict,
    "raw": (bytes, bytearray, memoryview),
}
"""The types of the members of a part and of an action, where they have such a member."""


class WrongValue(TypeError):
    """A value that an agent may not yield. The message names the fault and the remedy."""


class AgentMistake(Exception):
    """A mistake in the code of an agent. The message begins with file and line and names the agent."""


def wrong_value(value: Any) -> WrongValue:
    """Return the error for a value that is neither an action nor the content of one."""
    return WrongValue(f"gives {_describe(value)}")


def not_json(error: Exception) -> WrongValue:
    """Return the error for content that JSON cannot represent, from the error of the encoder."""
    reason = str(error)
    return WrongValue(f"gives what JSON cannot hold: {reason[:1].lower()}{reason[1:]}")


def check_part(part: Part) -> None:
    """Raise WrongValue for a part without exactly one content, or with a member of a wrong type."""
    if not isinstance(part, Part):
        raise WrongValue(f"gives an Artifact whose parts have a value of type {type(part).__name__}: give Part values")
    contents = (part.text is not None) + (part.raw is not None) + (part.url is not None) + (part.data is not UNSET)
    if contents != 1:
        null = " (data=None is the value null: leave data= out)" if contents > 1 and part.data is None else ""
        raise WrongValue(f"gives a Part with {contents} contents: give it one of text=, raw=, url= and data={null}")
    check_members("a Part", part)


def check_members(owner: str, value: Any) -> None:
    """Raise WrongValue for a member of a wrong type: a text or a name, metadata, or the bytes of a file."""
    for name, kind in _MEMBERS.items():
        member = getattr(value, name, None)
        if member is not None and not isinstance(member, kind):
            what = {"metadata": "a dict", "raw": "bytes"}.get(name, "a string")
            raise WrongValue(f"gives {owner} whose {name}= is not {what}, but of type {type(member).__name__}")


def _describe(value: Any) -> str:
    """Return a description of the value, and how to mend the likely mistake."""
    match value:
        case None:
            return f"None: {CHOICES}"
        case CoroutineType():
            value.close()  # Python must not warn about it too.
            return f'a coroutine, {value.__qualname__}(): did you forget "await"?'
        case AsyncGeneratorType():
            how = 'one by one, with "async for" in an async agent'
            return f"an async generator, {value.__qualname__}(): give its values, {how}"
        case GeneratorType():
            return f'a generator, {value.__qualname__}(): give its values, one by one, with "for"'
        case set() | frozenset() | tuple():
            return f"a {type(value).__name__}, which JSON does not have: give a list"
        case _ if inspect.isroutine(value):
            return f"the function {value.__qualname__} itself: did you forget the brackets behind it?"
        case _:
            return f"a value of type {type(value).__name__}: {CHOICES}"


def at_yield(values: Any) -> str | None:
    """Return file and line of the yield at which a generator stands, sync or async; None for any other value."""
    frame = None
    while values is not None:
        frame = getattr(values, "ag_frame", None) or getattr(values, "gi_frame", None) or frame
        values = getattr(values, "gi_yieldfrom", None)
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def at_raise(trace: TracebackType | None) -> str | None:
    """Return file and line of the innermost frame outside this package; None if there is none."""
    place = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent != HERE:
            place = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
