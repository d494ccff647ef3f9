"""The passage of one message through a relay: it is sent once, its remote task is followed, and the events come back.

A run that finds the message accepted by a remote task follows that task from the stored position. A run that does not
know sends the message under the same id. The remote task is stored before the first of its events is passed on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from django.conf import settings
from msgspec.structs import replace

from a2a.actions import Action, Say
from a2a.client import Client, ClientError, Update
from a2a.client.errors import InvalidResponse
from a2a.client.news import news
from a2a.client.reading import UNDATED
from a2a.events import ArtifactAdded, StatusChanged
from a2a.failures import Failure, Retry
from a2a.run import Run
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Message, Role, Status, Task
from tasks_app.masking import mask_text
from tasks_app.models import RelayedTask
from tasks_app.outbound.policy import Blocked, Unknown
from tasks_app.relays import cancellation, relayed_tasks
from tasks_app.relays.nudges import nudges_of
from tasks_app.relays.options import RelayOptions
from tasks_app.relays.remotes import client_of
from tasks_app.relays.translation import actions_of, failure_of, message_id_of, metadata_of, outgoing, reply_of

log = logging.getLogger(__name__)
POLL_FIRST, POLL_LONGEST = 0.25, 5.0
"""Seconds between two reads of the task of an agent that does not stream; the pause grows while nothing happens."""
LONGEST_ID = 1_000
"""Characters of the longest id of a remote task or context."""
LOOK = 0.5
"""Seconds between two looks into the inbox."""
SETTLE = 5.0
"""Seconds that a task that has ended waits for the answer to a message that is on its way."""
FAULTS = (ClientError, Blocked, Unknown)


class Passage:
    """One run of a relay."""

    def __init__(self, run: Run, relay: RelayOptions) -> None:
        self.run = run
        self.relay = relay
        self.row: RelayedTask | None = None
        """The remote task, once it is known."""
        self.is_over = False
        self.is_sending = False
        """True once this run has begun to send a message."""
        self.empty = 0
        """The number of events that have led to no action."""
        self.may_repeat = False
        """True until the first status after a resumption without ids, which begins with the status as it is."""
        self.forwarding = asyncio.Lock()
        """Locked while a message that came during the run is on its way."""

    async def actions(self) -> AsyncGenerator[Action, None]:
        """Yield the actions of the remote task. Raises Failure and Retry."""
        forwarding = None
        try:
            client = await client_of(self.relay)
            forwarding = asyncio.create_task(self._forward(client))
            async with aclosing(self._updates(client)) as updates:
                async for update in updates:
                    actions = await self._actions(update)
                    self._count(actions)
                    if self.is_over:
                        await self._settle()
                    for action in actions:
                        yield action
                    if self.is_over:
                        return
        except FAULTS as error:
            log.warning("task %s: relay %s: %s", self.run.task_id, self.relay.name, mask_text(str(error)))
            await self._note_absence(error)
            raise failure_of(error) from error
        finally:
            if forwarding is not None:
                forwarding.cancel()
            if not self.is_over:
                cancellation.cancel_soon(self.run.task_id, self.relay)
        raise Retry("The remote agent ended its stream before its task.")

    # ---------------------------------------------------------------- messages

    async def _updates(self, client: Client) -> AsyncGenerator[Update, None]:
        self.row = await relayed_tasks.find(self.run.task_id)
        pending = await self._without_arrivals(client, self._pending())
        *earlier, last = pending or (None,)
        for message in earlier:
            await self._send_alone(client, message)
        updates = self._resume(client) if last is None else self._send(client, last)
        async with aclosing(updates):
            async for update in updates:
                yield update

    def _pending(self) -> list[Message]:
        """Return the messages of the caller that the remote agent has not accepted, as far as is stored."""
        messages = [message for message in self.run.history if message.role is Role.USER]
        ids = [message_id_of(self.run.task_id, message) for message in messages]
        if self.row is None or self.row.message_id not in ids:
            return messages
        return messages[ids.index(self.row.message_id) + 1 :]

    async def _without_arrivals(self, client: Client, pending: list[Message]) -> list[Message]:
        """Return the messages without those that an earlier attempt has sent, and that the remote task has, although
        that is not stored. Raises Failure if that cannot be known, and a message may not be sent twice."""
        row = self.row
        if row is None or not pending:
            return pending
        is_doubtful = any(row.sending == message_id_of(self.run.task_id, message) for message in pending)
        # A message that came while the remote task ended is in it or not: the answer was not waited for.
        if row.remote_id and (is_doubtful or self.run.attempt > 1 or not row.is_open):
            ids = {message.message_id for message in (await client.get_task(row.remote_id)).history}
            while pending and message_id_of(self.run.task_id, pending[0]) in ids:
                await self._accept(pending.pop(0), row.remote_id, row.remote_context)
        elif is_doubtful and not self.relay.resend:
            raise Failure(
                "The worker was lost while the message was on its way. It is not sent again, because the remote agent "
                "may have it (resend=no)."
            )
        return pending

    async def _outgoing(self, message: Message) -> Message:
        if not self.relay.resend:
            self.is_sending = True
            await relayed_tasks.note_sending(
                self.run.task_id, self.relay.name, message_id_of(self.run.task_id, message)
            )
        row = self.row
        return await outgoing(
            self.run,
            message,
            remote_id=row.remote_id or None if row is not None and row.is_open else None,
            remote_context=row.remote_context or None if row is not None else None,
        )

    async def _send_alone(self, client: Client, message: Message) -> Update | None:
        """Send a message without following its task. Return a direct reply, if the answer is one."""
        wire = await self._outgoing(message)
        answer = await client.send(
            wire,
            return_immediately=True,
            accepted_output_modes=self.run.accepts,
            metadata=metadata_of(self.run),
        )
        if isinstance(answer, Message):
            return Update(event=answer, task_id="", context_id="")
        await self._accept(message, answer.id, answer.context_id)
        return None

    async def _forward(self, client: Client) -> None:
        """Send each message that comes during the run. One that cannot be sent stays unread in the inbox, so that the
        agent is called again with it."""
        place = 0
        with suppress(*FAULTS):
            while True:
                await asyncio.sleep(LOOK)
                entries = self.run.inbox.entries[place:] if self.row is not None and self.row.is_open else []
                for seq, message in entries:
                    async with self.forwarding:
                        await self._send_alone(client, message)
                        self.run.inbox.cursor, place = seq, place + 1

    async def _settle(self) -> None:
        """Let the message that is on its way be answered: the remote task may have ended because of it, and an agent
        with an unread message is called again."""
        with suppress(TimeoutError):
            async with asyncio.timeout(SETTLE), self.forwarding:
                return

    async def _send(self, client: Client, message: Message) -> AsyncGenerator[Update, None]:
        """Send the message, and yield the updates of the task that accepts it."""
        if not (await client.card()).streaming:
            if reply := await self._send_alone(client, message):
                yield reply
                return
            async for update in self._resume(client):
                yield update
            return
        wire = await self._outgoing(message)
        base: Task | None = None
        async with client.stream(
            wire, accepted_output_modes=self.run.accepts, metadata=metadata_of(self.run)
        ) as stream:
            async for update in stream:
                if base is None and not isinstance(update.event, Message):
                    row = await self._accept(message, update.task_id, update.context_id)
                    if row.remote_id != update.task_id:
                        break
                    base = self._base(row)
                for new in _new(base, update):
                    yield new
            else:
                return
        # Another run has sent the message, too, and was the first to store its task: this one is needless.
        with suppress(ClientError):
            await client.cancel_task(update.task_id)
        async for update in self._resume(client):
            yield update

    async def _note_absence(self, error: ClientError | Blocked | Unknown) -> None:
        """Store that no message was sent, if it certainly did not arrive."""
        is_certain = not isinstance(error, ClientError) or not (error.processed or error.doubtful)
        if not self.relay.resend and self.is_sending and is_certain:
            await relayed_tasks.note_sending(self.run.task_id, self.relay.name, "")

    async def _accept(self, message: Message, remote_id: str, remote_context: str) -> RelayedTask:
        if max(len(remote_id), len(remote_context)) > LONGEST_ID or not f"{remote_id}{remote_context}".isprintable():
            raise InvalidResponse("the id of the remote task or of its context cannot be stored", where=self.relay.url)
        message_id = message_id_of(self.run.task_id, message)
        self.row = await relayed_tasks.accept(self.run.task_id, self.relay.name, message_id, remote_id, remote_context)
        return self.row

    # ------------------------------------------------------------- remote task

    async def _resume(self, client: Client) -> AsyncGenerator[Update, None]:
        """Yield the updates of the remote task that are not in our log."""
        row = self.row
        if row is None:
            raise LookupError(f"task {self.run.task_id} has no message of a caller")
        if not (await client.card()).streaming:
            async for update in self._poll(client, row):
                yield update
            return
        self.may_repeat = not row.position
        after = int(row.position) if row.position.isascii() and row.position.isdigit() else None
        async with client.subscribe(row.remote_id, after=after, task=self._base(row)) as stream:
            async for update in stream:
                yield update

    async def _poll(self, client: Client, row: RelayedTask) -> AsyncGenerator[Update, None]:
        """Yield the changes of the task of an agent that does not stream. A notification ends the pause."""
        base, pause = self._base(row), POLL_FIRST
        with nudges_of(self.run.task_id) as nudge:
            while True:
                nudge.clear()
                task = await client.get_task(row.remote_id)
                for update in _new(base, Update(event=task, task_id=task.id, context_id=task.context_id)):
                    yield update
                    pause = POLL_FIRST
                base = task
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await nudge.wait()
                pause = min(2 * pause, POLL_LONGEST)

    def _base(self, row: RelayedTask) -> Task:
        """Return the remote task as far as it is in our log."""
        status = Status(state=TaskState.WORKING, timestamp=UNDATED)
        return Task(id=row.remote_id, context_id=row.remote_context, status=status, artifacts=self.run.artifacts)

    # ----------------------------------------------------------------- actions

    async def _actions(self, update: Update) -> list[Action]:
        """Return the actions for an update. Raises Failure."""
        match update.event:
            case Message() as message:
                self.is_over = True
                return [reply_of(message)]
            case Task():
                return []
            case StatusChanged() | ArtifactAdded() as event:
                state = update.state
                if state in TERMINAL:
                    self.is_over = True
                    await relayed_tasks.close(self.run.task_id)
                actions = [action for action in actions_of(event, update.id) if not self._is_repeated(action)]
                self.is_over = self.is_over or state in INTERRUPTED
                return actions

    def _count(self, actions: list[Action]) -> None:
        """Count an event without content: the log, which has the limits of a task, never sees it. Raises Failure."""
        self.empty += not actions
        if self.empty > settings.A2A_TASK_EVENTS:
            raise Failure(f"The remote agent sent more than {settings.A2A_TASK_EVENTS} events without content.")

    def _is_repeated(self, action: Action) -> bool:
        """Return whether a progress report is in the history already."""
        if not isinstance(action, Say) or not self.may_repeat:
            return False
        self.may_repeat = False
        return any(message.role is Role.AGENT and message.parts == action.parts for message in self.run.history)


def _new(base: Task | None, update: Update) -> list[Update]:
    """Return the updates of a stream that begins with the whole task, without what the base has.

    Only the last one has the id: after a crash between them, the task is compared again.
    """
    if base is None or not isinstance(update.event, Task):
        return [update]
    updates = [replace(update, event=event, id=None) for event in news(base, update.event)]
    return [*updates[:-1], replace(updates[-1], id=update.id)] if updates else []
