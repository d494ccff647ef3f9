"""The client: the operations of an agent, in any version and binding."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from math import isfinite
from types import TracebackType
from typing import Any, Self, cast
from uuid import uuid4
from weakref import WeakSet

import httpx
from msgspec.structs import replace

from a2a.client.answers import ConfigPage, TaskPage
from a2a.client.arguments import check_credentials, check_kind, check_message, check_time, state_of
from a2a.client.cards import VERSIONS, binding_name, choose
from a2a.client.clock import SYSTEM, Clock
from a2a.client.conversation import Conversation
from a2a.client.credentials import Bearer, Credentials
from a2a.client.discovery import FoundCard, Trust, believe, find_card, read_card
from a2a.client.errors import InvalidResponse, TaskNotCancelable, TaskNotFound, VersionNotSupported
from a2a.client.http import Exchange, Http
from a2a.client.link import WAYS, Link
from a2a.client.patience import Retries, Timeouts, is_repeatable, repeat
from a2a.client.refusals import parsed
from a2a.client.room import Room
from a2a.client.sharing import SharedWork
from a2a.client.stream import Listening, Stream
from a2a.client.systems import SystemCalls, message_of
from a2a.money import micros_of
from a2a.requests import (
    CancelTask,
    CreatePushConfig,
    DeletePushConfig,
    GetExtendedCard,
    GetPushConfig,
    GetTask,
    ListPushConfigs,
    ListTasks,
    Request,
    SendMessage,
    StreamMessage,
    SubscribeToTask,
)
from a2a.states import QUIET, TaskState
from a2a.types import Card, Interface, Json, Message, PushConfig, Task

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
"""Seconds between two reads of a task in a language whose calls do not wait: the first pause, and the longest."""
LARGEST = 100_000_000
"""The default limit of bytes, for an answer and for one event of a stream."""


class Client(SystemCalls):
    """An agent on another server. The first call finds it by its card."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        credentials: Credentials | None = None,
        versions: Sequence[str] = VERSIONS,
        bindings: Sequence[str] = (),
        downgrade: bool = False,
        timeouts: Timeouts | None = None,
        retries: Retries | None = None,
        trust: Trust | None = None,
        extensions: Sequence[str] = (),
        interface: Interface | None = None,
        largest: int = LARGEST,
        room: Room | None = None,
        http: httpx.AsyncClient | None = None,
        clock: Clock = SYSTEM,
    ) -> None:
        """Prepare a client; nothing is sent yet.

        `url` is the base address of the agent, or that of its card. `token` is short for Bearer credentials.
        `versions` and `bindings` are allowed, the preferred first; without bindings the card's order decides,
        with WebSocket last.
        `downgrade` lets a refusal of the version (-32009) lead to an older one. With `interface` no card is read.
        Clients with the same `room` hold so many bytes of unfinished answers together, at most.
        Raises TypeError for an argument of a wrong type.
        """
        check_credentials(credentials)
        check_kind("timeouts", timeouts, Timeouts, "Timeouts(request=60)")
        check_kind("retries", retries, Retries, "Retries(times=5)")
        self.url = url
        self._versions = tuple(versions)
        self._bindings = tuple(map(binding_name, bindings))
        self._downgrade = downgrade
        self._retries = retries or Retries()
        self._trust = trust
        self._extensions = tuple(extensions)
        self._own = http is None
        self._clock = clock
        # Streams keep their connections, so their number must not limit the calls beside them.
        client = http or httpx.AsyncClient(limits=httpx.Limits(max_connections=None, max_keepalive_connections=20))
        source = Bearer(token) if token and credentials is None else credentials
        self._http = Http(client, source, timeouts or Timeouts(), clock, largest, room or Room())
        self._card: FoundCard | None = None
        self._links = [Link(self._http, interface, self._extensions)] if interface else []
        self._opened = self._links
        """The links, and those to versions that the server has refused."""
        self._streams = WeakSet[Stream | Conversation]()
        """The streams, until nothing refers to them."""
        self._reading = SharedWork()
        """The reading of the card."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                await self.leave_streams()
        finally:
            await self.close()

    async def leave_streams(self) -> None:
        """Leave all streams. Their tasks continue.

        An error in the body of a loop leaves its stream unfinished. At its end an event loop would close the generators
        of the stream in any order, and report each one that another is closing.
        """
        for stream in list(self._streams):
            with suppress(RuntimeError):  # Another task is reading it, and gets the error of its connection.
                await stream.close()

    async def close(self) -> None:
        """Close the connections, unless they belong to the caller's own httpx client."""
        for link in self._opened:
            await link.close()
        if self._own:
            await self._http.client.aclose()

    # ---------------------------------------------------------------- messages

    async def send(
        self,
        message: str | Message,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        return_immediately: bool = False,
        history_length: int | None = None,
        accepted_output_modes: Sequence[str] = (),
        push_config: PushConfig | None = None,
        metadata: Json | None = None,
        agent: str | None = None,
        budget: Any = None,
    ) -> Task | Message:
        """Send a message. Return its task when it has ended or is interrupted, or a direct reply.

        `budget` is the most that the caller pays for the task, in dollars. `agent` names the agent, or a skill of it,
        in languages that name it outside of the metadata: ACP, ADR-002 and zones. In A2A it is refused.
        """
        request = SendMessage(
            message=message_of(message, task_id, context_id),
            return_immediately=return_immediately,
            history_length=history_length,
            accepted_output_modes=tuple(accepted_output_modes),
            push_config=push_config,
            metadata=metadata,
            agent=agent,
            budget=None if budget is None else micros_of(budget),
        )
        return cast("Task | Message", await self.perform(request))

    def stream(
        self,
        message: str | Message,
        *,
        task_id: str | None = None,
        context_id: str | None = None,
        history_length: int | None = None,
        accepted_output_modes: Sequence[str] = (),
        push_config: PushConfig | None = None,
        metadata: Json | None = None,
        agent: str | None = None,
        budget: Any = None,
    ) -> Stream:
        """Send a message and follow its task live. `agent` and `budget` are those of `send`."""
        request = StreamMessage(
            message=message_of(message, task_id, context_id),
            history_length=history_length,
            accepted_output_modes=tuple(accepted_output_modes),
            push_config=push_config,
            metadata=metadata,
            agent=agent,
            budget=None if budget is None else micros_of(budget),
        )
        return self.follow(request)

    def subscribe(self, task_id: str, *, after: int | None = None, task: Task | None = None) -> Stream:
        """Follow an existing task: the task as it is, or as of the event `after`, then all later events.

        With `task`, the task as the caller has it as of `after`, the stream yields only what is new.
        """
        return self.follow(SubscribeToTask(id=task_id, after=after), task)

    # ------------------------------------------------------------------- tasks

    async def get_task(self, task_id: str, *, history_length: int | None = None) -> Task:
        """Return a task as it is now."""
        return cast("Task", await self.perform(GetTask(id=task_id, history_length=history_length)))

    async def list_tasks(
        self,
        *,
        context_id: str | None = None,
        state: TaskState | str | None = None,
        page_size: int = 50,
        page_token: str | None = None,
        history_length: int | None = None,
        since: datetime | None = None,
        include_artifacts: bool = False,
    ) -> TaskPage:
        """Return one page of the caller's tasks, the newest status first. Raises ValueError for a text that is no
        state, and TypeError if `since` is no datetime."""
        check_time("since", since)
        request = ListTasks(
            context_id=context_id,
            state=state_of(state),
            page_size=page_size,
            page_token=page_token,
            history_length=history_length,
            since=since,
            include_artifacts=include_artifacts,
        )
        return cast("TaskPage", await self.perform(request))

    async def all_tasks(self, **filters: Any) -> AsyncGenerator[Task, None]:
        """Yield the tasks of all pages. The filters are those of `list_tasks`."""
        token: str | None = None
        earlier: set[int] = set()  # hashes, because tokens may be long
        while token != "":
            page = await self.list_tasks(**filters, page_token=token)
            for task in page.tasks:
                yield task
            token = page.next_page_token
            if hash(token) in earlier:
                raise InvalidResponse("a page of tasks leads back to an earlier one", where=self.url)
            earlier.add(hash(token))

    async def cancel_task(self, task_id: str, *, metadata: Json | None = None) -> Task:
        """End a task. Return the task after its end."""
        try:
            return cast("Task", await self.perform(CancelTask(id=task_id, metadata=metadata)))
        except TaskNotCancelable as error:
            # An earlier attempt, whose answer was lost, may have canceled the task.
            if error.doubtful:
                task = await self.get_task(task_id)
                if task.status.state is TaskState.CANCELED:
                    return task
            raise

    # ---------------------------------------------------------------- webhooks

    async def create_push_config(self, task_id: str, config: str | PushConfig) -> PushConfig:
        """Register a webhook for a task, or replace the webhook of that id. A text is its URL."""
        webhook = PushConfig(url=config) if isinstance(config, str) else config
        return cast("PushConfig", await self.perform(CreatePushConfig(task_id=task_id, config=webhook)))

    async def get_push_config(self, task_id: str, config_id: str | None = None) -> PushConfig:
        """Return a webhook of a task. In 0.x a task has a default webhook, whose id is None."""
        return cast("PushConfig", await self.perform(GetPushConfig(task_id=task_id, id=config_id)))

    async def list_push_configs(self, task_id: str, *, page_size: int = 0, page_token: str | None = None) -> ConfigPage:
        """Return one page of the webhooks of a task."""
        request = ListPushConfigs(task_id=task_id, page_size=page_size, page_token=page_token)
        return cast("ConfigPage", await self.perform(request))

    async def delete_push_config(self, task_id: str, config_id: str) -> None:
        """Delete a webhook of a task."""
        try:
            await self.perform(DeletePushConfig(task_id=task_id, id=config_id))
        except TaskNotFound as error:
            # An earlier attempt, whose answer was lost, may have deleted the webhook.
            if not error.doubtful:
                raise

    # ------------------------------------------------------------------- cards

    async def card(self) -> Card:
        """Return the public card of the agent."""
        return (await self.found_card()).card

    async def extended_card(self) -> Card:
        """Return the card with all that the caller's credentials allow. It needs a signature as the public one does."""
        wire = await self._perform(GetExtendedCard(), Link.ask_plainly)
        where = (await self.link()).interface.url
        return (await read_card(self._http, wire, where, self._retries, self._trust)).card

    async def found_card(self) -> FoundCard:
        """Return the public card with its JSON and its address."""
        async with self._reading.attempt():
            if self._card is None:
                self._card = await find_card(self._http, self.url, self._versions, self._retries, self._trust)
            return self._card

    async def verify_card(self, trust: Trust) -> None:
        """Verify the signatures of the public card. Raises UntrustedCard."""
        await believe(self._http, await self.found_card(), trust, self._retries)

    async def page(self, url: str) -> Any:
        """Return the JSON of a page beside the agent; None if there is no such page."""
        answer = await self._http.fetch(
            Exchange("GET", url, {"Accept": "application/json"}), self._http.timeouts.request
        )
        return parsed(answer) if answer.status == httpx.codes.OK else None

    # ----------------------------------------------------------------- calling

    async def perform(self, request: Request) -> Any:
        """Return the result of a request of a2a/requests.py. Raises ClientError, and TypeError for a wrong message."""
        check_message(request)
        return await self._perform(request, Link.ask)

    async def _perform(self, request: Request, ask: Callable[[Link, Request], Awaitable[Any]]) -> Any:
        while True:
            link = await self.link()
            safe = is_repeatable(request, self._retries.resend and link.language.has_message_ids)
            if not link.language.default_webhook:
                request = _with_webhook_id(request)
            try:
                result = await repeat(partial(ask, link, request), self._retries, self._clock, safe=safe)
                return await self._settled(result, request) if link.language.polls else result
            except VersionNotSupported:
                if not self._fell_back(link):
                    raise

    async def _settled(self, result: Any, request: Request) -> Any:
        """Return the task of a message that waits for its agent once it has ended or is interrupted."""
        if not isinstance(request, SendMessage) or request.return_immediately or isfinite(request.wait_seconds):
            return result
        pause = FIRST_PAUSE
        while isinstance(result, Task) and result.status.state not in QUIET:
            await self._clock.sleep(pause)
            pause = min(pause * 1.5, LONGEST_PAUSE)
            result = await self.perform(GetTask(id=result.id, history_length=request.history_length))
        return result

    def follow(self, request: Listening, task: Task | None = None) -> Stream:
        """Return the stream of a request. It connects when its first update is requested. Raises TypeError for a wrong
        message."""
        check_message(request)
        stream = Stream(self.link, self._fell_back, request, self._retries, self._clock, task)
        self._streams.add(stream)
        return stream

    async def link(self) -> Link:
        """Return the interface in use. The first call reads the card and chooses the interface."""
        return (await self.links())[0]

    async def links(self) -> list[Link]:
        """Return the interfaces that may be used, the preferred first."""
        if not self._links:
            public = await self.found_card()
            ways = {(way.binding, way.language.version) for way in WAYS}
            usable = choose(public.card, public.url, self._versions, self._bindings, ways)
            self._links = self._opened = [Link(self._http, interface, self._extensions) for interface in usable]
        return self._links

    def _fell_back(self, refused: Link) -> bool:
        """Use an older version from now on. Return whether there is one."""
        older = [link for link in self._links if link.language.version < refused.language.version]
        if not self._downgrade or not older:
            return False
        self._links = older
        return True


def _with_webhook_id(request: Request) -> Request:
    """Return the request with an id for its webhook, so that all attempts register the same webhook."""
    if isinstance(request, CreatePushConfig) and not request.config.id:
        return replace(request, config=replace(request.config, id=str(uuid4())))
    return request
