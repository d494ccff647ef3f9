"""Let the function of an agent act, whatever its form: what it yields or returns is given on as actions, one by one.

A value that means nothing is an AgentMistake, which names the line of the yield that gave it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from a2a.agents import where
from a2a.errors import InvalidParams
from a2a.mistakes import AgentMistake, WrongValue, at_raise, at_yield
from a2a.run import Action, Run, action_of
from a2a.scribe import ends_run

Give = Callable[[Action], Awaitable[object]]
GiveNow = Callable[[Action], bool]
"""Returns whether nothing that comes after it is heard."""


async def act(run: Run, give: Give) -> None:
    """Let an async agent act, to its end or to the action that ends the run. Raises AgentMistake, InvalidParams for
    inputs that do not fit, and what the agent raises."""
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
        raise located(run, error, at_raise(error.__traceback__)) from None


async def _give(run: Run, value: Any, give: Give, values: Any) -> bool:
    """Give the action on; return whether it was the last. `values` is the generator that yielded it."""
    try:
        action = taken(run, value)
        await give(action)
    except WrongValue as error:
        raise located(run, error, at_yield(values)) from None
    return ends_run(action)


def act_now(run: Run, give: GiveNow) -> None:
    """Let an agent act that is not async, in this thread; else like `act`."""
    inputs = arguments(run)
    try:
        if run.agent.form == "function":
            if (value := run.agent.function(run, **inputs)) is not None:
                _give_now(run, value, give, None)
            return
        with contextlib.closing(run.agent.function(run, **inputs)) as values:
            for value in values:
                if _give_now(run, value, give, values):
                    return
    except WrongValue as error:
        raise located(run, error, at_raise(error.__traceback__)) from None


def _give_now(run: Run, value: Any, give: GiveNow, values: Any) -> bool:
    if run.cancelled:
        return True
    try:
        return give(taken(run, value))
    except WrongValue as error:
        raise located(run, error, at_yield(values)) from None


def act_here(run: Run, give: GiveNow) -> None:
    """Let an agent of any form act, in this thread, which has no event loop."""

    async def give_here(action: Action) -> None:
        give(action)

    if run.agent.blocks:
        act_now(run, give)
    else:
        asyncio.run(act(run, give_here))


def taken(run: Run, value: Any) -> Action:
    """The action that a value of the agent stands for, which is no draft any more. Raises WrongValue."""
    run.drafts.give(value)
    return action_of(value)


def located(run: Run, error: WrongValue, place: str | None = None) -> AgentMistake:
    """The mistake with its place: the given one, or else that of the function."""
    return AgentMistake(f'{place or where(run.agent.function)}: agent "{run.agent.name}" {error}')


def arguments(run: Run) -> dict[str, Any]:
    """The inputs of the agent from the message's first data part. Raises InvalidParams naming what does not fit."""
    shape = run.agent.inputs
    if shape is None:
        return {}
    place = next((n for n, part in enumerate(run.message.parts) if part.data is not msgspec.UNSET), None)
    field = f"message.parts[{place or 0}].data"
    try:
        values = msgspec.convert({} if place is None else run.message.parts[place].data, shape)
    except msgspec.ValidationError as error:
        raise InvalidParams((field, str(error).replace("`", ""))) from None
    return {name: getattr(values, name) for name in shape.__struct_fields__}
