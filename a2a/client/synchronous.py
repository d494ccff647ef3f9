"""The client without `async`, for scripts: each call runs an event loop of its own until it has its result."""

import asyncio
from collections.abc import AsyncIterator, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from a2a.client.answers import ConfigPage, SharedStream, TaskPage, Workflow
from a2a.client.asynchronous import Client
from a2a.client.discovery import Trust
from a2a.client.stream import Stream
from a2a.client.systems import MemoryCalls
from a2a.client.updates import Update
from a2a.memory import Memory
from a2a.requests import Request
from a2a.shared_streams import ChunkDocument
from a2a.types import Card, Json, Message, PushConfig, Task
from a2a.workflows import CapabilitiesDocument, Phase

Value = TypeVar("Value")


class SyncStream:
    """The updates of a task, as an iterator. Use it with `with` if you leave it before its end."""

    def __init__(self, runner: asyncio.Runner, stream: Stream) -> None:
        self._runner = runner
        self._stream = stream

    @property
    def task(self) -> Task | None:
        """The task as of the last update; None before the first, and for a direct reply."""
        return self._stream.task

    @property
    def last_id(self) -> str | None:
        """The id of the last event, from which another stream can resume later."""
        return self._stream.last_id

    def __iter__(self) -> Iterator[Update]:
        return self

    def __next__(self) -> Update:
        try:
            return self._runner.run(self._next())
        except StopAsyncIteration:
            raise StopIteration from None

    async def _next(self) -> Update:
        return await anext(aiter(self._stream))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leave the stream. The task continues."""
        self._runner.run(self._stream.close())


class SyncClient:
    """A client whose methods block. It has the arguments of `Client`, and cannot be used while an event loop runs."""

    def __init__(self, url: str, **options: Any) -> None:
        self._client = Client(url, **options)
        self._runner = asyncio.Runner()
        self._is_closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections. To close them again does nothing."""
        if not self._is_closed:
            self._run(self._client.leave_streams())
            self._run(self._client.close())
            self._runner.close()
            self._is_closed = True

    def _run(self, asking: Coroutine[Any, Any, Value]) -> Value:
        try:
            return self._runner.run(asking)
        finally:
            asking.close()  # The runner has not begun it if it is closed, or if another loop runs.

    def send(self, message: str | Message, **options: Any) -> Task | Message:
        """Send a message; see `Client.send`."""
        return self._run(self._client.send(message, **options))

    def stream(self, message: str | Message, **options: Any) -> SyncStream:
        """Send a message and follow its task live."""
        return SyncStream(self._runner, self._client.stream(message, **options))

    def subscribe(self, task_id: str, **options: Any) -> SyncStream:
        """Follow an existing task; see `Client.subscribe`."""
        return SyncStream(self._runner, self._client.subscribe(task_id, **options))

    def get_task(self, task_id: str, *, history_length: int | None = None) -> Task:
        """Return a task as it is now."""
        return self._run(self._client.get_task(task_id, history_length=history_length))

    def list_tasks(self, **filters: Any) -> TaskPage:
        """Return one page of the caller's tasks; see `Client.list_tasks`."""
        return self._run(self._client.list_tasks(**filters))

    def all_tasks(self, **filters: Any) -> Iterator[Task]:
        """Yield the tasks of all pages; see `Client.all_tasks`."""
        tasks = self._client.all_tasks(**filters)
        try:
            while (task := self._run(_next(tasks))) is not None:
                yield task
        finally:
            self._run(tasks.aclose())

    def cancel_task(self, task_id: str, *, metadata: Json | None = None) -> Task:
        """End a task. Return the task after its end."""
        return self._run(self._client.cancel_task(task_id, metadata=metadata))

    def create_push_config(self, task_id: str, config: str | PushConfig) -> PushConfig:
        """Register a webhook for a task, or replace the webhook of that id. A text is its URL."""
        return self._run(self._client.create_push_config(task_id, config))

    def get_push_config(self, task_id: str, config_id: str | None = None) -> PushConfig:
        """Return a webhook of a task."""
        return self._run(self._client.get_push_config(task_id, config_id))

    def list_push_configs(self, task_id: str, **paging: Any) -> ConfigPage:
        """Return one page of the webhooks of a task; see `Client.list_push_configs`."""
        return self._run(self._client.list_push_configs(task_id, **paging))

    def delete_push_config(self, task_id: str, config_id: str) -> None:
        """Delete a webhook of a task."""
        self._run(self._client.delete_push_config(task_id, config_id))

    def start_shared_stream(self, *participants: str, **options: Any) -> SharedStream:
        """Begin or resume a shared stream; see `Client.start_shared_stream`."""
        return self._run(self._client.start_shared_stream(*participants, **options))

    def send_to_shared_stream(self, stream_id: str, message: str | Message, **options: Any) -> int:
        """Send a message, which each agent of the stream answers. Return the number of its chunk."""
        return self._run(self._client.send_to_shared_stream(stream_id, message, **options))

    def send_chunk(self, stream_id: str, chunk: str | Message, sequence: int, **options: Any) -> int:
        """Send a piece of a message; see `Client.send_chunk`."""
        return self._run(self._client.send_chunk(stream_id, chunk, sequence, **options))

    def end_shared_stream(self, stream_id: str, *, reason: str = "", pause: bool = False) -> None:
        """Close a shared stream for good, or pause it."""
        self._run(self._client.end_shared_stream(stream_id, reason=reason, pause=pause))

    def follow_shared_stream(self, stream_id: str, *, after: int | None = None) -> Iterator[ChunkDocument]:
        """Yield the chunks of a shared stream; see `Client.follow_shared_stream`."""
        conversation = self._client.follow_shared_stream(stream_id, after=after)
        try:
            while (chunk := self._run(_next(aiter(conversation)))) is not None:
                yield chunk
        finally:
            self._run(conversation.close())

    def execute(self, message: str | Message, **options: Any) -> Task:
        """Execute the task that a message of a chat describes; see `Client.execute`."""
        return self._run(self._client.execute(message, **options))

    def send_in_phase(self, message: str | Message, **options: Any) -> Task | Message:
        """Send a message in a phase of a workflow; see `Client.send_in_phase`."""
        return self._run(self._client.send_in_phase(message, **options))

    def stream_in_phase(self, message: str | Message, **options: Any) -> SyncStream:
        """Send a message in a phase of a workflow, and follow its task live."""
        return SyncStream(self._runner, self._client.stream_in_phase(message, **options))

    def set_phase(self, workflow: str, phase: Phase, **options: Any) -> Workflow:
        """Have a workflow enter a phase; see `Client.set_phase`."""
        return self._run(self._client.set_phase(workflow, phase, **options))

    def execute_workflow(self, workflow: str, message: str | Message | None = None, **options: Any) -> Workflow:
        """Run phases of a workflow; see `Client.execute_workflow`."""
        return self._run(self._client.execute_workflow(workflow, message, **options))

    def get_workflow(self, workflow: str) -> Workflow:
        """Return a workflow as it is now."""
        return self._run(self._client.get_workflow(workflow))

    def capabilities(self) -> CapabilitiesDocument:
        """Return what the agent can do for this caller."""
        return self._run(self._client.capabilities())

    def execute_batch(self, operation: str, items: Sequence[str | Message], **options: Any) -> Task:
        """Do one operation to many tasks; see `Client.execute_batch`."""
        return self._run(self._client.execute_batch(operation, items, **options))

    @property
    def memory(self) -> Memory:
        """The memory of the caller. Use the methods whose name ends in `_now`."""
        return Memory(SyncMemoryCalls(self._client, self._runner))

    def card(self) -> Card:
        """Return the public card of the agent."""
        return self._run(self._client.card())

    def extended_card(self) -> Card:
        """Return the card with all that the caller's credentials allow."""
        return self._run(self._client.extended_card())

    def verify_card(self, trust: Trust) -> None:
        """Verify the signatures of the public card. Raises UntrustedCard."""
        self._run(self._client.verify_card(trust))

    def perform(self, request: Request) -> Any:
        """Return the result of a request of a2a/requests.py."""
        return self._run(self._client.perform(request))


class SyncMemoryCalls(MemoryCalls):
    """The way of a client without `async` to the memory."""

    def __init__(self, client: Client, runner: asyncio.Runner) -> None:
        super().__init__(client)
        self._runner = runner

    def ask_now(self, request: Request) -> Any:
        """Perform a request. Raises ClientError."""
        return self._runner.run(self.ask(request))


async def _next(values: AsyncIterator[Value]) -> Value | None:
    return await anext(values, None)
