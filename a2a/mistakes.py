"""Mistakes in the code of an agent, as one sentence with its file, line and name: for its author, never for callers."""

import inspect
from pathlib import Path
from types import AsyncGeneratorType, CoroutineType, GeneratorType, TracebackType
from typing import Any

HERE = str(Path(__file__).parent)
CHOICES = "give text, bytes, JSON data, a Part, an Artifact, or what run.status, run.ask and their like make"


class WrongValue(TypeError):
    """A value that an agent may not give. The message says what is wrong with it, and what to do."""


class AgentMistake(Exception):
    """A sentence that begins with the file and line of the mistake, and names the agent."""


def wrong(value: Any) -> WrongValue:
    """The error for a value that stands for no action and no part."""
    return WrongValue(f"gives {_named(value)}")


def no_json(error: Exception) -> WrongValue:
    """The error for content that JSON cannot hold, from what the encoder says about it."""
    said = str(error)
    return WrongValue(f"gives what JSON cannot hold: {said[:1].lower()}{said[1:]}")


def _named(value: Any) -> str:
    """Name the value, and say what was probably meant."""
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
    """The file and line at which a generator, async or not, waits in its yield; None if it is no generator."""
    frame = None
    while values is not None:
        frame = getattr(values, "ag_frame", None) or getattr(values, "gi_frame", None) or frame
        values = getattr(values, "gi_yieldfrom", None)
    return None if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"


def at_raise(trace: TracebackType | None) -> str | None:
    """The innermost file and line of a traceback outside of this package; None if all of it is inside."""
    place = None
    while trace is not None:
        code = trace.tb_frame.f_code
        if Path(code.co_filename).parent != Path(HERE):
            place = f"{code.co_filename}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place
