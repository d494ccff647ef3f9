"""Agents that tests talk to: every form, every way to end, every mistake an author can make."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

from a2a.agents import agent
from a2a.failures import Retry
from a2a.run import Run
from a2a.types import Extension, Part, Skill
from tests.support import filling_agents, phase_agents, zone_agents  # noqa: F401  # registers them

SECRET = "hunter2: the password in the traceback"
"""The words of an agent that fails. No caller may see them."""
MEMORY: dict[str, Any] = {}
"""Values that agents leave for tests in the same process."""

# --------------------------------------------------------------- the forms


@agent
async def form_async_generator(run: Run) -> AsyncIterator[Any]:
    """Says what it is told, as an async generator."""
    yield run.status("at it")
    yield run.text


@agent
async def form_coroutine(run: Run) -> str:
    """Says what it is told, as a coroutine."""
    return run.text


@agent
def form_generator(run: Run) -> Iterator[Any]:
    """Says what it is told, as a generator."""
    yield run.status("at it")
    yield run.text


@agent
def form_function(run: Run) -> str:
    """Says what it is told, as a function."""
    return run.text


@agent(quick=True)
async def quick_async_generator(run: Run) -> AsyncIterator[Any]:
    """Says what it is told, at once, as an async generator."""
    yield run.status("at it")
    yield run.text


@agent(quick=True)
async def quick_coroutine(run: Run) -> str:
    """Says what it is told, at once, as a coroutine."""
    return run.text


@agent(quick=True)
def quick_generator(run: Run) -> Iterator[Any]:
    """Says what it is told, at once, as a generator."""
    yield run.status("at it")
    yield run.text


@agent(quick=True)
def quick_function(run: Run) -> str:
    """Says what it is told, at once, as a function."""
    return run.text


@agent(quick=True)
async def bench(run: Run) -> str:
    """Awaits once and completes."""
    await asyncio.sleep(0)
    return run.text


# ------------------------------------------------------------- the endings


@agent(quick=True)
async def replies(run: Run) -> Any:
    """Answers with a message, without a task."""
    return run.reply(f"You said {run.text}")


@agent
async def replies_late(run: Run) -> Any:
    """Answers with a message, when there is a task already."""
    return run.reply(f"You said {run.text}")


@agent
async def rejects(run: Run) -> Any:
    """Will not do it."""
    return run.reject("That is not my job.")


@agent
async def asks(run: Run) -> AsyncIterator[Any]:
    """Asks once, then says what it was told."""
    said = [message.text for message in run.history if message.role == "user"]
    if len(said) == 1:
        yield run.ask("Which one?")
        return
    yield " and ".join(said)


@agent(quick=True)
async def asks_quickly(run: Run) -> Any:
    """Asks inside the call."""
    return run.ask("Which one?")


@agent
async def asks_credentials(run: Run) -> AsyncIterator[Any]:
    """Needs credentials, then goes on."""
    if len(run.history) == 1:
        yield run.ask_credentials("Please sign in.")
        return
    yield "signed in"


# ------------------------------------------------------------ the mistakes


@agent
async def raises(run: Run) -> AsyncIterator[Any]:
    """Fails after a first chunk."""
    yield "so far so good"
    raise RuntimeError(SECRET)


@agent(quick=True)
async def quick_raises(run: Run) -> Any:
    """Fails inside the call."""
    raise RuntimeError(SECRET)


@agent
def raises_in_a_thread(run: Run) -> Iterator[Any]:
    """Fails in a thread of its own."""
    yield "so far so good"
    raise RuntimeError(SECRET)


@agent(timeout=0.3)
async def sleeper(run: Run) -> None:
    """Sleeps past its timeout."""
    await asyncio.sleep(60)


@agent(quick=True)
async def quick_sleeper(run: Run) -> None:
    """Sleeps past what quick agents have."""
    await asyncio.sleep(60)


@agent(quick=True)
async def gives_nul(run: Run) -> str:
    """Says what PostgreSQL cannot store."""
    return "before\0after"


# ------------------------------------------------------------ what it gets


@agent
async def inputs(run: Run, city: str, days: int = 1) -> str:
    """Tells the weather of a city."""
    return f"{days} days of rain in {city}"


@agent(quick=True)
async def quick_inputs(run: Run, city: str, days: int = 1) -> str:
    """Tells the weather of a city, at once."""
    return f"{days} days of rain in {city}"


@agent
async def conversation(run: Run) -> str:
    """Tells what was said before."""
    return " | ".join(message.text for message in run.conversation)


@agent(quick=True)
async def conversation_quickly(run: Run) -> str:
    """Tells within the call what was said before."""
    return await conversation(run)


@agent
async def gate(run: Run) -> AsyncIterator[Any]:
    """Says one word, and another for every message that comes while it is at work, until one says stop."""
    yield "begin"
    heard = 0
    while True:
        while heard == len(run.inbox):  # noqa: ASYNC110  # an inbox is a list
            await asyncio.sleep(0.01)
        word = run.inbox[heard].text
        heard += 1
        if word == "stop":
            break
        yield f" {word}"
    yield " end"


@agent
async def chatty(run: Run) -> AsyncIterator[Any]:
    """Yields 200 small chunks as fast as it can."""
    for number in range(200):
        yield f"{number} "
        await asyncio.sleep(0)


@agent(backoff=0)
async def waits(run: Run) -> AsyncIterator[Any]:
    """Works until it is stopped."""
    yield "working"
    try:
        await asyncio.sleep(60)
    finally:
        MEMORY[run.task_id] = "stopped"


@agent
def waits_in_a_thread(run: Run) -> Iterator[Any]:
    """Works in a thread until it is told to stop."""
    try:
        for number in range(6000):
            yield f"{number} "
            time.sleep(0.01)
    finally:
        MEMORY[run.task_id] = "stopped"


@agent(attempts=2, backoff=0)
async def tries_twice(run: Run) -> AsyncIterator[Any]:
    """Waits at its first try, completes at its second."""
    yield f"try {run.attempt}"
    if run.attempt == 1:
        await asyncio.sleep(60)


@agent(attempts=2, backoff=0)
async def fails_once(run: Run) -> AsyncIterator[Any]:
    """Fails at its first try, after a chunk unless it is told to be silent, and completes at its second."""
    if run.attempt == 2 or run.text != "silent":
        yield f"try {run.attempt}"
    if run.attempt == 1:
        raise Retry("The line is bad.")


@agent(scopes=["weather"], quick=True)
async def scoped(run: Run) -> str:
    """Wants a scope of its own."""
    return "allowed"


@agent(scopes=["crew"], listed=False, quick=True)
async def backstage(run: Run) -> str:
    """Is shown to the crew alone."""
    return "behind the curtain"


@agent(
    quick=True,
    skills=["sing", Skill(id="whisper", name="Whisper", description="For friends.", tags=("quiet",), listed=False)],
)
async def singer(run: Run) -> str:
    """Has a skill that only some callers are shown."""
    return "la"


# ------------------------------------------- media types and extensions

GEO, TRACE = "https://example.org/ext/geo/v1", "urn:example:trace"


@agent(input_modes=["image/*", "text/plain"], output_modes=["text/csv", "application/pdf"], quick=True)
async def pictures(run: Run) -> str:
    """Looks at pictures and makes tables."""
    return f"{len(run.message.parts)} parts for {','.join(run.accepts) or 'anybody'}"


@agent(extensions=[Extension(uri=GEO, description="Where", params={"precision": 3}), TRACE], quick=True)
async def extended(run: Run) -> AsyncIterator[Any]:
    """Says which extensions were activated, quickly."""
    yield run.artifact(" ".join(run.extensions) or "none", metadata={GEO: {"lat": 1}}, extensions=[GEO])
    yield run.status("noted", extensions=[TRACE], metadata={TRACE: "t"})


@agent(extensions=[Extension(uri=GEO, required=True)])
async def demanding(run: Run) -> AsyncIterator[Any]:
    """Asks once; refuses callers that do not request its extension."""
    if len(run.history) == 1:
        yield run.ask("Where?", extensions=[GEO])
        return
    yield f"{' '.join(run.extensions)} for {','.join(run.accepts)}"


# --------------------------------------------------------------------- files


@agent(input_modes=["*/*"], output_modes=["*/*"])
async def files(
    run: Run, sizes: list[int] | None = None, name: str = "made.bin", kind: str = "application/zip"
) -> AsyncIterator[Any]:
    """Tells of the files that it is given, and makes files of the sizes that it is told."""
    for part in run.files:
        content = await run.read(part)
        yield run.status(f"{part.filename}: {len(content)} bytes, {sum(content) % 251}")
    for size in sizes or []:
        yield run.artifact(Part(raw=bytes(size), filename=name, media_type=kind), id=f"size-{size}")
    if any(part.text == "fail" for part in run.message.parts):
        raise RuntimeError(SECRET)


@agent(input_modes=["*/*"])
def files_in_a_thread(run: Run) -> Iterator[Any]:
    """Tells of the files that it is given, without being async."""
    for part in run.files:
        yield f"{len(run.read_now(part))} bytes"


@agent(quick=True, input_modes=["*/*"], output_modes=["*/*"])
async def quick_files(run: Run) -> Any:
    """Gives back the bytes that it is given, as a direct reply if it is told to."""
    parts = [Part(raw=await run.read(part), filename="back.bin") for part in run.files]
    return run.reply(*parts) if run.text == "reply" else run.artifact(*parts)


@agent(input_modes=["*/*"])
async def asks_for_files(run: Run) -> AsyncIterator[Any]:
    """Asks for files, again if it is told to, and tells of them."""
    if len(run.history) == 1 or run.text == "again":
        yield run.ask("Which files?")
        return
    for part in run.files:
        yield f"{len(await run.read(part))} bytes"


@agent
async def writes(run: Run, chunks: int, size: int) -> AsyncIterator[Any]:
    """Writes so many chunks of a size."""
    for _ in range(chunks):
        yield "x" * size


PIECES = ("  Once", " upon", "\n\na", " ", "time\u2028", ".\n")
"""With all at which a reader of lines might divide it."""


@agent
async def tells(run: Run) -> AsyncIterator[str]:
    """Tells a text in pieces that are written one by one."""
    for piece in PIECES:
        yield piece
        await asyncio.sleep(0.1)


# ------------------------------------------------------------------ money


@agent(cost=("0.50", "1"), attempts=2, input_modes=["text/plain", "application/pdf"])
async def priced(run: Run) -> AsyncIterator[Any]:
    """Reports each amount that the message lists, and does what else it says."""
    for word in run.text.split():
        if word == "ask":
            yield run.ask("more?")
        elif word == "fail":
            raise RuntimeError("as it was told")
        elif word == "again":
            if run.attempt == 1:
                raise ConnectionError("as it was told")
        elif word == "wait":
            await asyncio.sleep(60)
        else:
            run.spend(word)
            yield run.status(f"spent {word}")
    yield f"{run.spent} of {run.budget}"


@agent(cost=("0.50", "1"), quick=True, input_modes=["text/plain", "application/pdf"])
async def priced_quick(run: Run) -> AsyncIterator[Any]:
    """Reports the amounts that the message lists, within the call."""
    for word in run.text.split():
        if word == "ask":
            yield run.ask("more?")
        elif word == "reply":
            yield run.reply("done")
        else:
            run.spend(word)
    yield f"{run.spent} of {run.budget}"
