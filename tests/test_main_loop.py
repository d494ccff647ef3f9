"""The main loop: it goes on until its coroutine ends, and does not wait for tasks that ignore their cancellation."""

import asyncio
import contextlib
import time
from typing import Any

import pytest
import uvloop

from tasks_app.process import main_loop
from tasks_app.process.main_loop import run_to_end

ON_EACH_LOOP = pytest.mark.parametrize(
    "factory", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


def leave(how: str) -> None:
    if how == "stop":
        asyncio.get_running_loop().stop()
    else:
        raise {"exit": SystemExit(2), "interrupt": KeyboardInterrupt()}[how]


@pytest.mark.parametrize("how", ["exit", "interrupt", "stop"])
@ON_EACH_LOOP
def test_code_that_leaves_the_loop_ends_nothing_else(factory: Any, how: str) -> None:
    async def crash() -> None:
        leave(how)

    async def main() -> str:
        loop = asyncio.get_running_loop()
        loop.call_soon(leave, how)
        results = await asyncio.gather(crash(), asyncio.sleep(0.01, "slept"), return_exceptions=True)
        return str(results[1])

    assert run_to_end(factory, main()) == "slept"


@ON_EACH_LOOP
def test_an_exit_of_the_main_coroutine_ends_the_loop(factory: Any) -> None:
    async def main() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        run_to_end(factory, main())


@ON_EACH_LOOP
def test_a_task_that_ignores_its_cancellation_does_not_keep_the_loop(
    factory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(main_loop, "END_SECONDS", 0.05)
    tasks = []

    async def ignore() -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(60)

    async def main() -> None:
        tasks.append(asyncio.get_running_loop().create_task(ignore()))
        await asyncio.sleep(0)

    began = time.monotonic()
    run_to_end(factory, main())
    assert time.monotonic() - began < 30
