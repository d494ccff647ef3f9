"""Calls that only some systems have: shared streams (ACP), chats (zones), and workflows, batches and memory (SPARC)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, cast
from uuid import uuid4
from weakref import WeakSet

from msgspec.structs import replace

from a2a.batches import BatchInput, ExecuteBatch, Optimization
from a2a.client.answers import SharedStream, Workflow
from a2a.client.arguments import check_parts
from a2a.client.clock import Clock
from a2a.client.conversation import Conversation
from a2a.client.errors import MemoryNotFound, SharedStreamClosed
from a2a.client.link import Link
from a2a.client.patience import Retries
from a2a.client.stream import Listening, Stream
from a2a.dialects.zone import MARK
from a2a.memory import DeleteMemory, Memory
from a2a.requests import (
    EndSharedStream,
    Execute,
    FollowSharedStream,
    Priority,
    Request,
    SendChunk,
    SendToSharedStream,
    StartSharedStream,
)
from a2a.shared_streams import ChunkRole
from a2a.types import Json, Message, Part, Role, Task
from a2a.workflows import (
    CapabilitiesDocument,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    Phase,
    SendInPhase,
    SetPhase,
    StreamInPhase,
)


class SystemCalls(ABC):
    """The methods of a client for single systems. Each needs an interface of its system."""

    _retries: Retries
    _clock: Clock
    _streams: WeakSet[Stream | Conversation]

    @abstractmethod
    async def perform(self, request: Request) -> Any:
        """Return the result of a request of a2a/requests.py. Raises ClientError."""

    @abstractmethod
    async def link(self) -> Link:
        """Return the interface in use."""

    @abstractmethod
    def follow(self, request: Listening, task: Task | None = None) -> Stream:
        """Return the stream of a request."""

    # ---------------------------------------------------------- shared streams

    async def start_shared_stream(
        self, *participants: str, stream_id: str | None = None, metadata: Json | None = None
    ) -> SharedStream:
        """Begin a shared stream; with `stream_id` resume a paused one, and add participants."""
        request = StartSharedStream(stream_id=stream_id, participants=participants, metadata=metadata)
        return cast("SharedStream", await self.perform(request))

    async def send_to_shared_stream(
        self, stream_id: str, message: str | Message, *, role: ChunkRole = ChunkRole.USER
    ) -> int:
        """Send a message, which each agent of the stream answers. Return the number of its chunk."""
        request = SendToSharedStream(stream_id=stream_id, parts=message_of(message).parts, role=role)
        return cast("int", await self.perform(request))

    async def send_chunk(
        self,
        stream_id: str,
        chunk: str | Message,
        sequence: int,
        *,
        is_last: bool = False,
        role: ChunkRole = ChunkRole.USER,
    ) -> int:
        """Send a piece of a message under a number of the caller's own. Return the number of the chunk."""
        parts = message_of(chunk).parts
        request = SendChunk(stream_id=stream_id, parts=parts, role=role, sequence=sequence, is_last=is_last)
        return cast("int", await self.perform(request))

    async def end_shared_stream(self, stream_id: str, *, reason: str = "", pause: bool = False) -> None:
        """Close a shared stream for good, or pause it."""
        try:
            await self.perform(EndSharedStream(stream_id=stream_id, reason=reason, pauses=pause))
        except SharedStreamClosed as error:
            # An earlier attempt, whose answer was lost, may have ended it.
            if not error.doubtful:
                raise

    def follow_shared_stream(self, stream_id: str, *, after: int | None = None) -> Conversation:
        """Follow the chunks of a shared stream: those after the number `after`, or those from now on."""
        request = FollowSharedStream(stream_id=stream_id, after=after)
        conversation = Conversation(self.link, request, self._retries, self._clock)
        self._streams.add(conversation)
        return conversation

    # ------------------------------------------------------------------- zones

    async def execute(
        self,
        message: str | Message,
        *,
        channel: str,
        bot_token: str,
        wait: bool | float = True,
        task_id: str | None = None,
        agent: str | None = None,
        **facts: str,
    ) -> Task:
        """Execute the task that a message of a chat describes. Return it when it has completed or asks a question.

        With `wait=False` return it as soon as it exists; with a number, as it is after so many seconds. `facts` are
        further params of zones: `correlation_id`, `thread_ts`, `team_id` and `user_id`.
        """
        request = Execute(
            message=message_of(message, task_id),
            return_immediately=not wait,
            wait_seconds=float("inf") if isinstance(wait, bool) else float(wait),
            agent=agent,
            metadata={MARK: {"channel": channel, **facts}},
            secrets={"bot_token": bot_token},
        )
        return cast("Task", await self.perform(request))

    # --------------------------------------------------------------- workflows

    async def send_in_phase(
        self,
        message: str | Message,
        *,
        phase: Phase | None = None,
        workflow: str | None = None,
        task_id: str | None = None,
        return_immediately: bool = False,
        metadata: Json | None = None,
        priority: Priority = Priority.NORMAL,
    ) -> Task | Message:
        """Send a message in a phase of a workflow. Return its task when it has ended or is interrupted."""
        request = SendInPhase(
            message=message_of(message, task_id),
            phase=phase,
            workflow=workflow,
            return_immediately=return_immediately,
            metadata=metadata,
            priority=priority,
        )
        return cast("Task | Message", await self.perform(request))

    def stream_in_phase(
        self,
        message: str | Message,
        *,
        phase: Phase | None = None,
        workflow: str | None = None,
        metadata: Json | None = None,
    ) -> Stream:
        """Send a message in a phase of a workflow, and follow its task live."""
        request = StreamInPhase(message=message_of(message), phase=phase, workflow=workflow, metadata=metadata)
        return self.follow(request)

    async def set_phase(
        self,
        workflow: str,
        phase: Phase,
        *,
        agent_types: Sequence[str] | None = None,
        configuration: Json | None = None,
    ) -> Workflow:
        """Have a workflow enter a phase: the next one, an earlier one, or the one that it is in."""
        types = None if agent_types is None else tuple(agent_types)
        request = SetPhase(workflow=workflow, phase=phase, agent_types=types, configuration=configuration)
        return cast("Workflow", await self.perform(request))

    async def execute_workflow(
        self,
        workflow: str,
        message: str | Message | None = None,
        *,
        phase: Phase | None = None,
        agent_types: Sequence[str] | None = None,
        configuration: Json | None = None,
    ) -> Workflow:
        """Run one phase of a workflow, or all phases from its current one on. Return the workflow as it begins."""
        request = ExecuteWorkflow(
            workflow=workflow,
            phase=phase,
            message=None if message is None else message_of(message),
            agent_types=None if agent_types is None else tuple(agent_types),
            configuration=configuration,
        )
        return cast("Workflow", await self.perform(request))

    async def get_workflow(self, workflow: str) -> Workflow:
        """Return a workflow as it is now."""
        return cast("Workflow", await self.perform(GetWorkflow(workflow=workflow)))

    async def capabilities(self) -> CapabilitiesDocument:
        """Return what the agent can do for this caller."""
        return cast("CapabilitiesDocument", await self.perform(GetCapabilities()))

    # ------------------------------------------------------ batches and memory

    async def execute_batch(
        self,
        operation: str,
        items: Sequence[str | Message],
        *,
        max_concurrent: int | None = None,
        batch_size: int | None = None,
        optimization: Optimization = "performance",
        metadata: Json | None = None,
    ) -> Task:
        """Do one operation to many tasks, named by their ids, or to messages. Return the task of the batch."""
        inputs = (
            BatchInput(task_id=one) if isinstance(one, str) else BatchInput(message=message_of(one)) for one in items
        )
        request = ExecuteBatch(
            operation=operation,
            items=tuple(inputs),
            max_concurrent=max_concurrent,
            batch_size=batch_size,
            optimization=optimization,
            metadata=metadata,
        )
        return cast("Task", await self.perform(request))

    @property
    def memory(self) -> Memory:
        """The memory of the caller, with the methods that agents have. Those whose name ends in `_now` need a
        SyncClient."""
        return Memory(MemoryCalls(self))


class MemoryCalls:
    """The way of a client to the memory."""

    def __init__(self, client: SystemCalls) -> None:
        self._client = client

    async def ask(self, request: Request) -> Any:
        """Perform a request. Raises ClientError."""
        try:
            return await self._client.perform(request)
        except MemoryNotFound as error:
            # An earlier attempt, whose answer was lost, may have deleted the entry.
            if isinstance(request, DeleteMemory) and error.doubtful:
                return None
            raise

    def ask_now(self, request: Request) -> Any:
        """Raise TypeError, because only a SyncClient can block."""
        raise TypeError("a method of memory whose name ends in _now needs a SyncClient")


def message_of(message: str | Message, task_id: str | None = None, context_id: str | None = None) -> Message:
    """Return a message of the caller with an id, which is the same in all attempts to send it. Raises TypeError."""
    if not isinstance(message, str | Message):
        raise TypeError(f"a message must be a text or a Message of a2a.types, not {type(message).__name__}")
    if isinstance(message, str):
        message = Message(message_id=str(uuid4()), role=Role.USER, parts=(Part(text=message),))
    check_parts(message)
    return replace(message, task_id=task_id or message.task_id, context_id=context_id or message.context_id)
