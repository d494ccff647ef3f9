"""A smoke test of any A2A server: its card, each of its interfaces, and, if asked, a message."""

from collections.abc import Awaitable, Callable
from uuid import uuid4

from a2a.client import Client, ClientError, errors
from a2a.client.console import FAILED, OK, Options
from a2a.client.console.output import Output
from a2a.client.link import Link
from a2a.client.updates import text_of
from a2a.requests import GetTask
from a2a.types import Message


class Report:
    """The outcome of each step, printed as it comes."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.faults = 0

    def add(self, step: str, outcome: str, *, fault: bool = False) -> None:
        self.faults += fault
        if self._output.as_json:
            self._output.json({"step": step, "ok": not fault, "outcome": outcome})
        else:
            self._output.line(f"{'FAIL' if fault else 'ok':4}  {step}: {outcome}")

    async def run(self, step: str, work: Callable[[], Awaitable[str]]) -> None:
        """Do a step whose work returns its outcome; a ClientError is a fault."""
        try:
            self.add(step, await work())
        except ClientError as error:
            self.add(step, f"{error.reason}: {error}", fault=True)


async def check(client: Client, options: Options, output: Output) -> int:
    """Try a server, and report each step. A fault does not keep the next step from being tried."""
    report = Report(output)
    public = await client.found_card()
    card = public.card
    report.add("card", f"{card.name} {card.version}, skills: {len(card.skills)}, at {public.url}")
    signed = "signatures" in public.wire
    report.add("signatures", "present; `card verify` verifies them" if signed else "none")
    offers = [f"{one.binding} {one.version}" for one in card.interfaces]
    report.add("interfaces", ", ".join(offers) or "none", fault=not offers)
    for link in await client.links():
        name = f"{link.interface.binding} {link.interface.version} at {link.interface.url}"
        await report.run(name, lambda link=link: unknown_task(link))  # type: ignore[misc]  # the loop's value
    if options["send"]:
        await report.run("send", lambda: answered(client, options["send"]))
        if card.streaming:
            await report.run("stream", lambda: streamed(client, options["send"]))
    return FAILED if report.faults else OK


async def unknown_task(link: Link) -> str:
    """Ask for a task that cannot exist: the refusal shows that the interface works."""
    try:
        await link.ask(GetTask(id=str(uuid4())))
    except errors.TaskNotFound:
        return "answers, and refuses an unknown task as it should"
    return "answers, with a task for an id that was never given out"


async def answered(client: Client, text: str) -> str:
    """Send a message, and read the task again."""
    reply = await client.send(text)
    if isinstance(reply, Message):
        return f"a bare reply of {len(reply.text)} characters"
    task = await client.get_task(reply.id)
    return f"task {task.id} is {task.status.state.value}, with {len(text_of(task))} characters"


async def streamed(client: Client, text: str) -> str:
    """Stream a message to its end."""
    updates = [update async for update in client.stream(text)]
    ids = "with ids" if updates and updates[-1].id else "without ids: it cannot be resumed exactly"
    return f"{len(updates)} events, {ids}"
