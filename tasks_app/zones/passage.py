"""The passage of one message to the execution zone: it is executed there once, and its text comes back as it grows."""

import asyncio
import hashlib
import logging
import random
from collections.abc import AsyncGenerator
from time import monotonic
from typing import Any

import msgspec
from django.conf import settings

from a2a import errors
from a2a.actions import Chunk
from a2a.dialects.zone import MARK
from a2a.failures import Failure, Retry
from a2a.files import is_stored
from a2a.params import write_base64
from a2a.run import Run
from a2a.types import Json, Message, Part, Role
from tasks_app import run_secrets
from tasks_app.zones.choose_carrier import carrier
from tasks_app.zones.execution import call, failure_of

log = logging.getLogger(__name__)
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 1.0
"""Seconds between two looks at a task; the pause grows while nothing happens."""
PATIENCE = 60.0
"""Seconds for which a call is sent again that the execution zone refuses for now: twice as long as a lease, for which
its database may be away without failing a task."""
FIRST_REFUSED, LONGEST_REFUSED = 1.0, 5.0
"""Seconds between two of these calls, at least; the pause grows with each refusal."""
FACTS = ("channel", "thread_ts", "team_id", "user_id")
"""The params that are passed on as they came."""
ANSWER = "answer"
"""The artifact with the text."""
ASKED_BY = "executionTask"
"""The member of a question's metadata that names the task of the execution zone."""
NO_TOKEN = "none"  # noqa: S105  # the opposite of a token
"""The token of a message that came without one, in a language without tokens."""


class Passage:
    """One run of the agent `execution`."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.carrier = carrier()
        facts = (run.metadata or {}).get(MARK)
        # A caller in a language other than that of zones may have put anything there.
        self.facts: Json = facts if isinstance(facts, dict) else {}
        self.correlation_id = str(self.facts.get("correlation_id") or run.task_id)
        self.owner = f"{run.caller.tenant}/{run.caller.name}"
        """The owner of the run, who takes turns with others where calls wait."""
        self.text = ""
        """The text so far."""

    async def actions(self) -> AsyncGenerator[Any, None]:
        """Yield the text as it grows, or the agent's question. Raises Failure and Retry."""
        result = await self._execute(self.run.message)
        ends, pause = monotonic() + settings.A2A_EXECUTION_SECONDS, FIRST_PAUSE
        while result["status"] == "accepted":
            if piece := self._news(result):
                yield piece
                pause = FIRST_PAUSE
            if monotonic() > ends:
                raise Failure("The execution took too long.", reason=errors.Timeout.reason)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            result = await self._call("get_task", {"task_id": result["task_id"]})
        if result["status"] == "input_required":
            yield self.run.ask(str(result["response_text"]), metadata={ASKED_BY: result["task_id"]})
            return
        if isinstance(error := result.get("error"), dict):
            failure = failure_of(error)
            # The task has ended: under its key another call would get the same outcome.
            raise Failure(failure.text, reason=failure.reason)
        await run_secrets.delete(run_secrets.key_of(self.run.task_id, self.run.message.message_id))
        # The last piece comes at the end, so that it is stored together with the end of the task.
        if piece := self._news(result):
            yield piece

    def _news(self, result: Json) -> Any:
        """Return the chunk with the end of the text; with all of it, in place of the former one, if another attempt of
        the execution has begun anew."""
        text, before = str(result["response_text"]), self.text
        self.text = text
        if text == before:
            return None
        grows = text.startswith(before)
        part = Part(text=text.removeprefix(before) if grows else text, media_type="text/plain")
        return Chunk((part,), artifact_id=ANSWER, name=ANSWER, append=None if grows else False)

    async def _call(self, method: str, params: Json) -> Json:
        """Return the result of a call. One that the execution zone refuses for some seconds is sent again after them.

        Raises Failure and Retry.
        """
        ends, pause = monotonic() + PATIENCE, FIRST_REFUSED
        while True:
            try:
                return await call(self.carrier, method, params, self.correlation_id, self.owner)
            except Retry as refusal:
                if refusal.after is None:
                    raise
                seconds = max(refusal.after, pause) * random.uniform(1.0, 1.2)  # noqa: S311  # jitter
                if monotonic() + seconds > ends:
                    raise
                log.warning("the execution zone refuses %s %s for now: %s", method, self.correlation_id, refusal.text)
            await asyncio.sleep(seconds)
            pause = min(2 * pause, LONGEST_REFUSED)

    async def _execute(self, message: Message) -> Json:
        """Have a message executed. The answer to a question goes to the task of the first message."""
        params = await self._params(message)
        first = next(message for message in self.run.history if message.role is Role.USER)
        if first.message_id != message.message_id:
            params["task_id"] = self._asking_task() or await self._find_task(first)
        return await self._call("execute_task", params)

    def _asking_task(self) -> str | None:
        """Return the task that has asked, as the last question names it; None before any question.

        A person may answer after days. The execution zone has forgotten the key of the first message then, and would
        execute that message again.
        """
        questions = (message.metadata for message in reversed(self.run.history) if message.role is Role.AGENT)
        return next((str(metadata[ASKED_BY]) for metadata in questions if metadata and ASKED_BY in metadata), None)

    async def _find_task(self, first: Message) -> str:
        """Return the task of the first message, by its key."""
        return str((await self._call("execute_task", await self._params(first)))["task_id"])

    async def _params(self, message: Message) -> Json:
        text = [part.text for part in message.parts if part.text is not None]
        files = [part for part in message.parts if part.text is None]
        facts = {name: self.facts[name] for name in FACTS if name in self.facts}
        agent = {"agent": settings.A2A_EXECUTION_AGENT} if settings.A2A_EXECUTION_AGENT else {}
        attachments = [attachment for part in files if (attachment := await self._attachment(part))]
        return (
            {"channel": self.run.caller.name}
            | facts
            | {"conversation": self._conversation()}
            | agent
            | ({"attachments": attachments} if files else {})
            | {
                "text": "\n".join(text),
                "bot_token": await self.run.secret("bot_token") or NO_TOKEN,
                "correlation_id": self.correlation_id,
                "wait": self.carrier.patience,
                "idempotency_key": f"{self.run.task_id}.{run_secrets.key_of('', message.message_id)[:32]}",
            }
        )

    def _conversation(self) -> str:
        """Return the name of the conversation in the execution zone, the same for all messages of one of this zone.

        The execution zone knows all callers of this zone by one key, and callers choose the names of their threads. So
        the name has the caller in it.
        """
        names = (self.run.caller.tenant, self.run.caller.name, self.run.context_id)
        return hashlib.sha256(msgspec.json.encode(names)).hexdigest()

    async def _attachment(self, part: Part) -> Json | None:
        """Return a file as an attachment; None for data, which zones do not have."""
        names = {name: value for name, value in (("name", part.filename), ("mimetype", part.media_type)) if value}
        if part.raw is not None or (part.url is not None and is_stored(part)):
            return names | {"content": write_base64(await self.run.read(part))}
        size = (part.metadata or {}).get("size")
        return None if part.url is None else names | {"url": part.url} | ({"size": size} if size else {})
