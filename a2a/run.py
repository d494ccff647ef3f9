"""The value an agent is given, the actions it may yield, and the exceptions it raises to fail or to be tried again."""

from collections.abc import Iterable
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Struct

from a2a.agents import Agent
from a2a.callers import NOBODY, Caller
from a2a.drafts import Drafts
from a2a.files import is_stored
from a2a.inbox import Inbox
from a2a.mistakes import WrongValue, wrong
from a2a.types import Artifact, Json, Message, Part


class Say(Struct, frozen=True):
    """Progress: the task is working, and this is what the agent says about it."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Ask(Struct, frozen=True):
    """A question to the caller: the task is interrupted until the next message."""

    parts: tuple[Part, ...]
    credentials: bool = False
    """It is credentials that are missing, not input."""
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Chunk(Struct, frozen=True):
    """Parts of a result. Chunks of one artifact are appended to each other within an attempt."""

    parts: tuple[Part, ...]
    artifact_id: str | None = None
    """None is the run's own artifact."""
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    last: bool = False
    """Nothing is added to this artifact any more."""
    extensions: tuple[str, ...] = ()
    """URIs of the extensions that had a part in it; here as in messages."""


class Reply(Struct, frozen=True):
    """A message: for a quick agent's new conversation the whole answer, without a task; else the last word."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Reject(Struct, frozen=True):
    """The agent will not do it."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


Action = Say | Ask | Chunk | Reply | Reject
_MAKERS = {Say: "status", Ask: "ask", Chunk: "artifact", Reply: "reply", Reject: "reject"}
"""The methods of a run that make them."""


class Failure(Exception):
    """An agent raises it to fail in its own words. Callers read them, so they must tell nothing that is not for all."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text


class Retry(Failure):
    """An agent raises it when another attempt is worth it: a model is overloaded, a quota is used up for now. Callers
    read the text. The agent is called again after so many seconds, or else after its own backoff, as long as its
    option `attempts` allows."""

    def __init__(self, text: str = "The agent cannot do it at the moment.", *, after: float | None = None) -> None:
        super().__init__(text)
        if after is not None and not 0 <= after < float("inf"):
            raise ValueError(f"Retry(after=...) takes a number of seconds from 0, not {after!r}")
        self.after = after


class Wants(Struct, frozen=True, omit_defaults=True):
    """Who sent a message, and how it is to be answered; kept with the task until the next message."""

    accepts: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    caller: Caller | None = None
    """None in what an earlier version stored."""

    def json(self) -> str:
        """Return the stored form; empty when there is nothing to say."""
        return "" if self == NOTHING else msgspec.json.encode(self).decode()


NOTHING = Wants()


def wants_of(stored: str) -> Wants:
    """The value of the stored text."""
    return msgspec.json.decode(stored, type=Wants) if stored else NOTHING


class Files(Protocol):
    """Reads the bytes of a part that are stored apart, by its URL. It is handed in, for there is no I/O here."""

    async def read(self, url: str) -> bytes: ...

    def read_now(self, url: str) -> bytes: ...


class Run:
    """One try of an agent at a task."""

    def __init__(
        self, agent: Agent, *, task_id: str, context_id: str, message: Message, attempt: int = 1,
        history: tuple[Message, ...] = (), conversation: tuple[Message, ...] = (), metadata: Json | None = None,
        wants: Wants = NOTHING, files: Files | None = None,
    ) -> None:  # fmt: skip
        self.agent = agent
        self.task_id = task_id
        self.context_id = context_id
        self.message = message
        """The one that this run answers."""
        self.attempt = attempt
        """How often the agent was called for this message, this call included."""
        self.history = history
        """The task's messages so far, oldest first, with the one above."""
        self.conversation = conversation
        """The newest 20 turns of the context before this task, as far as they have a million characters in all:
        messages, results, replies."""
        self.metadata = metadata or {}
        """The metadata of the request that made the task."""
        self.wants = wants
        self.accepts = wants.accepts
        """The media types that the caller of the newest message wants, ranges included; empty: no preference."""
        self.extensions = wants.extensions
        """URIs of the agent's extensions that the newest message activated."""
        self.caller = wants.caller or NOBODY
        """The sender of the message, as of the moment it was sent."""
        self.drafts = Drafts()
        """Actions that the agent made and has not given yet."""
        self._files = files
        self.inbox = Inbox()
        """Messages that arrived while the run was under way. If the agent completes or asks without a look at the
        newest, it is called again with that."""
        self.cancelled = False
        """Set when the result is not wanted any more. Async agents are stopped; sync ones at their next yield."""

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def data(self) -> Any:
        """The value of the message's first data part, or None."""
        return next((part.data for part in self.message.parts if part.data is not UNSET), None)

    @property
    def files(self) -> tuple[Part, ...]:
        """The parts of the message that are files, or links to some."""
        return tuple(part for part in self.message.parts if part.raw is not None or part.url is not None)

    async def read(self, part: Part) -> bytes:
        """The bytes of a file, wherever they are kept. Raises ValueError for a link and for data."""
        if self._files is not None and part.url is not None and is_stored(part):
            return await self._files.read(part.url)
        return _bytes_of(part)

    def read_now(self, part: Part) -> bytes:
        """Return the bytes of a part, for agents that are not async."""
        if self._files is not None and part.url is not None and is_stored(part):
            return self._files.read_now(part.url)
        return _bytes_of(part)

    def status(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Say:
        """Progress: the task is working, and this is said about it."""
        return self.drafts.add(Say(parts_of(content), metadata, self._declared(extensions)))

    def ask(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """A question to the caller. The agent is called again with the answer."""
        return self.drafts.add(Ask(parts_of(content), metadata=metadata, extensions=self._declared(extensions)))

    def ask_credentials(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """A question for credentials, which the caller gets elsewhere."""
        uris = self._declared(extensions)
        return self.drafts.add(Ask(parts_of(content), credentials=True, metadata=metadata, extensions=uris))

    def artifact(
        self, *content: Any, id: str | None = None, name: str | None = None, description: str | None = None,
        metadata: Json | None = None, last: bool = False, extensions: Iterable[str] = (),
    ) -> Chunk:  # fmt: skip
        """A chunk of a named artifact; the id defaults to the name."""
        chunk = Chunk(
            parts_of(content), artifact_id=id or name, name=name, description=description, metadata=metadata, last=last,
            extensions=self._declared(extensions),
        )  # fmt: skip
        return self.drafts.add(chunk)

    def reply(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reply:
        """A message instead of a result; for a quick agent's new conversation there is no task then."""
        return self.drafts.add(Reply(parts_of(content), metadata, self._declared(extensions)))

    def reject(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reject:
        """The agent will not do it, and says why."""
        return self.drafts.add(Reject(parts_of(content), metadata, self._declared(extensions)))

    def _declared(self, extensions: Iterable[str]) -> tuple[str, ...]:
        """Return the URIs as a tuple. Raises ValueError for an extension that is not on the agent's card."""
        uris = tuple(extensions)
        for uri in uris:
            if all(uri != known.uri for known in self.agent.extensions):
                raise ValueError(f"the agent does not declare the extension {uri}: name it in @agent(extensions=[...])")
        return uris


def _bytes_of(part: Part) -> bytes:
    if part.raw is not None:
        return part.raw
    if part.text is not None:
        return part.text.encode()
    what = "a link, which is not followed for you" if part.url is not None else "data: see part.data"
    raise ValueError(f"the part has no bytes here: it is {what}")


def parts_of(content: tuple[Any, ...]) -> tuple[Part, ...]:
    """Text, bytes, data and parts as parts. Raises WrongValue for anything else."""
    return tuple(part_of(value) for value in content)


def part_of(value: Any) -> Part:
    match value:
        case Part():
            return value
        case str():
            return Part(text=value, media_type="text/plain")
        case bytes():
            return Part(raw=value, media_type="application/octet-stream")
        case dict() | list() | int() | float() | bool():
            return Part(data=value, media_type="application/json")
        case _:
            raise wrong(value)


def action_of(value: Any) -> Action:
    """Return the action that a yielded or returned value stands for. Raises WrongValue for one without a meaning."""
    action = _action_of(value)
    if not action.parts:
        raise WrongValue(f"gives run.{_MAKERS[type(action)]}() without content: give it at least one part")
    if isinstance(action, Chunk) and not isinstance(action.artifact_id, str | None):
        kind = type(action.artifact_id).__name__
        raise WrongValue(f"gives an artifact whose id is not a string, but of type {kind}")
    return action


def _action_of(value: Any) -> Action:
    match value:
        case Say() | Ask() | Chunk() | Reply() | Reject():
            return value
        case Artifact():
            return Chunk(
                value.parts,
                artifact_id=value.artifact_id,
                name=value.name,
                description=value.description,
                metadata=value.metadata,
                extensions=value.extensions,
            )
        case _:
            return Chunk((part_of(value),))
