"""Mistakes in the code of an agent: one sentence with file, line and name, for its author and never for callers."""

import inspect
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import Any

HERE = Path(__file__).parent
CHOICES = "give text, bytes, JSON data, a Part, an Artifact, or what run.status, run.ask and their like make"


class WrongValue(TypeError):
    """A value that an agent may not yield. The message names the fault and the remedy."""


class AgentMistake(Exception):
    """A mistake as a sentence that begins with its file and line and names the agent."""


def wrong(value: Any) -> WrongValue:
    """Return the error for a value that is neither an action nor a part."""
    return WrongValue(f"gives {_named(value)}")


def no_json(error: Exception) -> WrongValue:
    """Return the error for content that JSON cannot represent, from the encoder's error."""
    said = str(error)
    return WrongValue(f"gives what JSON cannot hold: {said[:1].lower()}{said[1:]}")


def _named(value: Any) -> str:
    """Return a name for the value, with the likely intention."""
    match value:
        case None:
            return f"None: {CHOICES}"
        case CoroutineType():
            value.close()  # It is reported here: Python need not warn of it as well.
            return f'a coroutine, {value.__qualname__}(): did you forget "await"?'
        case AsyncGeneratorType():
            return f'an async generator, {value.__qualname__}(): give its values, one by one, with "async for"'
        case GeneratorType():
            return f'a generator, {value.__qualname__}(): give its values, with "yield from" or one by one'
        case set() | frozenset() | tuple():
            return f"a {type(value).__name__}, which JSON does not have: give a list"
        case _ if inspect.isroutine(value):
            return f"the function {value.__qualname__} itself: did you forget the brackets behind it?"
        case _:
            return f"a value of type {type(value).__name__}: {CHOICES}"


def at_yield(values: Any) -> str | None:
    """Return the file and line of the current yield of a generator, sync or async; None for any other value."""
    frame = None
    while values is not None:
        frame = getattr(values, "ag_frame", None) or getattr(values, "gi_frame", None) or frame
        values = getattr(values, "gi_yieldfrom", None)
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def at_raise(trace: TracebackType | None) -> str | None:
    """Return the innermost file and line of a traceback outside this package, or None."""
    place = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent != HERE:
            place = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
