"""The call of an agent's function, in each of its four forms. Yields and the return value become actions, one by one.

An invalid value is an AgentMistake, which names the line of its yield.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Generator
from typing import Any

import msgspec

from a2a.actions import Action, Chunk, action_of, part_of
from a2a.definitions import where
from a2a.errors import InvalidParams
from a2a.mismatches import UNKNOWN, violation
from a2a.mistakes import AgentMistake, WrongValue, at_raise, at_yield
from a2a.run import Run
from a2a.scribe import ends_run

Give = Callable[[Action], Awaitable[object]]
"""Receives the next action of an async agent."""
GiveNow = Callable[[Action], bool]
"""Receives the next action of a sync agent. Returns true to end the agent."""


async def act(run: Run, give: Give) -> None:
    """Run an async agent to its end, or to the action that ends the run.

    Raises AgentMistake for an invalid value, InvalidParams for inputs of the wrong type, and the agent's exceptions.
    """
    inputs = arguments(run)
    try:
        if run.agent.form == "coroutine":
            if (value := await run.agent.function(run, **inputs)) is not None:
                await _give(run, value, give, None)
            return
        async with contextlib.aclosing(run.agent.function(run, **inputs)) as values:
            async for value in values:
                if await _give(run, value, give, values):
                    return
    except WrongValue as error:
        raise locate(run, error, at_raise(error.__traceback__)) from None


async def _give(run: Run, value: Any, give: Give, values: Any) -> bool:
    """Give the action of a value, and return whether it ends the run. `values` is the generator that yielded it."""
    try:
        action = _take(run, value)
        await give(action)
    except WrongValue as error:
        raise locate(run, error, at_yield(values)) from None
    return ends_run(action)


def act_now(run: Run, give: GiveNow) -> None:
    """Run a sync agent in this thread. Raises as `act` does."""
    inputs = arguments(run)
    try:
        if run.agent.form == "function":
            if (value := run.agent.function(run, **inputs)) is not None:
                _give_now(run, value, give, None)
            return
        with contextlib.closing(run.agent.function(run, **inputs)) as values:
            has_more = True
            while has_more:
                value, has_more = _next(values)
                if (has_more or value is not None) and _give_now(run, value, give, values):
                    return
    except WrongValue as error:
        raise locate(run, error, at_raise(error.__traceback__)) from None


def _next(values: Generator[Any, Any, Any]) -> tuple[Any, bool]:
    """Return the next value of a generator and True; or at its end what it returns, which a `for` would drop, and
    False."""
    try:
        return next(values), True
    except StopIteration as end:
        return end.value, False


def _give_now(run: Run, value: Any, give: GiveNow, values: Any) -> bool:
    """Give the action of a value, and return whether the agent must end."""
    if run.cancelled:
        return True
    try:
        return give(_take(run, value))
    except WrongValue as error:
        raise locate(run, error, at_yield(values)) from None


def act_here(run: Run, give: GiveNow) -> None:
    """Run an agent of any form in this thread, which must not have an event loop. Raises as `act` does."""

    async def give_here(action: Action) -> None:
        give(action)

    if run.agent.blocks:
        act_now(run, give)
    else:
        asyncio.run(act(run, give_here))


def _take(run: Run, value: Any) -> Action:
    """Return the action of a value, and remove it from the drafts. Raises WrongValue."""
    if type(value) is str:  # what most agents give, and what cannot be wrong
        return Chunk((part_of(value),))
    run.drafts.remove(value)
    return action_of(value)


def locate(run: Run, error: WrongValue, place: str | None = None) -> AgentMistake:
    """Return the mistake with a source line, by default that of the agent's function."""
    return AgentMistake(f'{place or where(run.agent.function)}: agent "{run.agent.name}" {error}')


def arguments(run: Run) -> dict[str, Any]:
    """Return the agent's keyword arguments, from the first data part of the message.

    Raises InvalidParams with the path of a value that is of the wrong type.
    """
    inputs = run.agent.inputs
    if inputs is None:
        return {}
    place = next((n for n, part in enumerate(run.message.parts) if part.data is not msgspec.UNSET), None)
    field = f"message.parts[{place or 0}].data"
    try:
        values = msgspec.convert({} if place is None else run.message.parts[place].data, inputs)
    except msgspec.ValidationError as error:
        path, fault = violation(str(error), inputs, field)
        if fault == UNKNOWN and path.rpartition(".")[0] == field:
            fault += f"; the agent takes: {', '.join(inputs.__struct_fields__)}"
        raise InvalidParams((path, fault)) from None
    return {name: getattr(values, name) for name in inputs.__struct_fields__}
