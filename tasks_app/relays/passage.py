"""The passage of one message through a relay: it is sent once, its remote task is followed, and the events come back.

A run that finds the message accepted by a remote task follows that task from the stored position. A run that does not
know sends the message under the same id. The remote task is stored before the first of its events is passed on.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress

from msgspec.structs import replace

from a2a.client import Client, ClientError, Update
from a2a.client.news import news
from a2a.client.reading import UNDATED
from a2a.events import ArtifactAdded, StatusChanged
from a2a.run import Action, Failure, Retry, Run, Say
from a2a.states import INTERRUPTED, TERMINAL, TaskState
from a2a.types import Message, Role, Status, Task
from tasks_app.masking import mask_text
from tasks_app.models import RelayedTask
from tasks_app.outbound.dialling import Blocked, Unknown
from tasks_app.relays import kept, settling
from tasks_app.relays.passing import actions_of, failure_of, message_id_of, metadata_of, outgoing, reply_of
from tasks_app.relays.registration import RelayOptions
from tasks_app.relays.remotes import client_of

log = logging.getLogger(__name__)
POLL_FIRST, POLL_LONGEST = 0.25, 5.0
"""Seconds between two reads of the task of an agent that does not stream; the pause grows while nothing happens."""


class Passage:
    """One run of a relay."""

    def __init__(self, run: Run, relay: RelayOptions) -> None:
        self.run = run
        self.relay = relay
        self.message_id = message_id_of(run.task_id, run.message)
        self.is_over = False
        self.is_sending = False
        """True once this run has begun to send the message."""
        self.may_repeat = False
        """True until the first status after a resumption without ids, which begins with the status as it is."""

    async def actions(self) -> AsyncGenerator[Action, None]:
        """Yield the actions of the remote task. Raises Failure and Retry."""
        try:
            client = await client_of(self.relay)
            async with aclosing(self._updates(client)) as updates:
                async for update in updates:
                    for action in await self._actions(update):
                        yield action
                    if self.is_over:
                        return
        except (ClientError, Blocked, Unknown) as error:
            log.warning("task %s: relay %s: %s", self.run.task_id, self.relay.name, mask_text(str(error)))
            await self._note_absence(error)
            raise failure_of(error) from error
        finally:
            if not self.is_over:
                settling.settle_soon(self.run.task_id, self.relay)
        raise Retry("The remote agent ended its stream before its task.")

    # ----------------------------------------------------------------- updates

    async def _updates(self, client: Client) -> AsyncGenerator[Update, None]:
        row = await kept.find(self.run.task_id)
        if row is None or row.message_id != self.message_id:
            row = await self._find_arrival(client, row) or row
        if row is not None and row.message_id == self.message_id:
            updates = self._resume(client, row)
        else:
            updates = self._send(client, row)
        async with aclosing(updates):
            async for update in updates:
                yield update

    async def _find_arrival(self, client: Client, row: RelayedTask | None) -> RelayedTask | None:
        """Return the row if an earlier attempt has sent the message without storing that it was accepted, and the
        remote task has it. Raises Failure if that cannot be known, and the message may not be sent twice."""
        doubtful = row is not None and row.sending == self.message_id
        if row is not None and row.remote_id and row.is_open and (doubtful or self.run.attempt > 1):
            task = await client.get_task(row.remote_id)
            if any(message.message_id == self.message_id for message in task.history):
                return await self._accept(row.remote_id, row.remote_context)
        elif doubtful and not self.relay.resend:
            raise Failure(
                "The worker was lost while the message was on its way. It is not sent again, because the remote agent "
                "may have it (resend=no)."
            )
        return None

    async def _send(self, client: Client, row: RelayedTask | None) -> AsyncGenerator[Update, None]:
        """Send the message, and yield the updates of the task that accepts it."""
        if not self.relay.resend:
            self.is_sending = True
            await kept.note_sending(self.run.task_id, self.relay.name, self.message_id)
        goes_on = row is not None and row.is_open and row.remote_id
        message = await outgoing(
            self.run,
            remote_id=row.remote_id if row and goes_on else None,
            remote_context=row.remote_context or None if row else None,
        )
        if not (await client.card()).streaming:
            answer = await client.send(message, return_immediately=True, metadata=metadata_of(self.run))
            if isinstance(answer, Message):
                yield Update(event=answer, task_id="", context_id="")
                return
            row = await self._accept(answer.id, answer.context_id)
            async for update in self._poll(client, row):
                yield update
            return
        stream = client.stream(message, accepted_output_modes=self.run.accepts, metadata=metadata_of(self.run))
        base: Task | None = None
        async with stream:
            async for update in stream:
                if base is None and not isinstance(update.event, Message):
                    row = await self._accept(update.task_id, update.context_id)
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
        async for update in self._resume(client, row):
            yield update

    async def _note_absence(self, error: ClientError | Blocked | Unknown) -> None:
        """Store that the message was not sent, if it certainly did not arrive."""
        is_certain = not isinstance(error, ClientError) or not (error.processed or error.doubtful)
        if not self.relay.resend and self.is_sending and is_certain:
            await kept.note_sending(self.run.task_id, self.relay.name, "")

    async def _accept(self, remote_id: str, remote_context: str) -> RelayedTask:
        return await kept.accept(self.run.task_id, self.relay.name, self.message_id, remote_id, remote_context)

    async def _resume(self, client: Client, row: RelayedTask) -> AsyncGenerator[Update, None]:
        """Yield the updates of the remote task that are not in our log."""
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
        """Yield the changes of the task of an agent that does not stream."""
        base, pause = self._base(row), POLL_FIRST
        while True:
            task = await client.get_task(row.remote_id)
            for update in _new(base, Update(event=task, task_id=task.id, context_id=task.context_id)):
                yield update
                pause = POLL_FIRST
            base = task
            await asyncio.sleep(pause)
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
                    await kept.close(self.run.task_id)
                actions = [action for action in actions_of(event, update.id) if not self._is_repeated(action)]
                self.is_over = self.is_over or state in INTERRUPTED
                return actions

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
