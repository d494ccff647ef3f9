"""The Run that an agent receives, the actions that it yields, and the exceptions that end or repeat a run."""

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
    """Progress: the task is working; the parts describe it."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Ask(Struct, frozen=True):
    """A question to the caller: the task is interrupted until the next message."""

    parts: tuple[Part, ...]
    credentials: bool = False
    """True if credentials are missing instead of input."""
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Chunk(Struct, frozen=True):
    """Parts of a result. Chunks of one artifact are appended to each other within an attempt."""

    parts: tuple[Part, ...]
    artifact_id: str | None = None
    """None for the default artifact of the run."""
    name: str | None = None
    description: str | None = None
    metadata: Json | None = None
    last: bool = False
    """True for the final chunk of the artifact."""
    extensions: tuple[str, ...] = ()
    """URIs of the extensions that contributed to the chunk."""


class Reply(Struct, frozen=True):
    """A closing message. A quick agent answers a new conversation with it alone, without a task."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Reject(Struct, frozen=True):
    """A refusal of the task by the agent."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


Action = Say | Ask | Chunk | Reply | Reject
_MAKERS = {Say: "status", Ask: "ask", Chunk: "artifact", Reply: "reply", Reject: "reject"}
"""The method of Run that builds each action."""


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


class Preferences(Struct, frozen=True, omit_defaults=True):
    """The sender of a message and the preferred form of its answer, stored with the task until the next message."""

    accepts: tuple[str, ...] = ()
    extensions: tuple[str, ...] = ()
    caller: Caller | None = None
    """None in rows of earlier versions."""

    def json(self) -> str:
        """Return the stored form; empty for no preferences."""
        return "" if self == NO_PREFERENCES else msgspec.json.encode(self).decode()


NO_PREFERENCES = Preferences()


def preferences_of(stored: str) -> Preferences:
    """Return the value of the stored text."""
    return msgspec.json.decode(stored, type=Preferences) if stored else NO_PREFERENCES


class Files(Protocol):
    """Reader of parts that are stored apart from their task. The service provides it: this package has no I/O."""

    async def read(self, url: str) -> bytes: ...

    def read_now(self, url: str) -> bytes: ...


class Run:
    """One attempt of an agent at a task."""

    def __init__(
        self, agent: Agent, *, task_id: str, context_id: str, message: Message, attempt: int = 1,
        history: tuple[Message, ...] = (), conversation: tuple[Message, ...] = (), metadata: Json | None = None,
        preferences: Preferences = NO_PREFERENCES, files: Files | None = None,
    ) -> None:  # fmt: skip
        self.agent = agent
        self.task_id = task_id
        self.context_id = context_id
        self.message = message
        """The message that this run answers."""
        self.attempt = attempt
        """Number of calls for this message so far, including this one."""
        self.history = history
        """Messages of the task, oldest first, including `message`."""
        self.conversation = conversation
        """Messages, results and replies of the context before this task: the newest 20 turns, at most a million
        characters in total."""
        self.metadata = metadata or {}
        """Metadata of the request that created the task."""
        self.preferences = preferences
        self.accepts = preferences.accepts
        """Media types and ranges that the sender of the message accepts; empty for no preference."""
        self.extensions = preferences.extensions
        """URIs of the agent's extensions that the message activated."""
        self.caller = preferences.caller or NOBODY
        """The sender of the message, with the scopes of that moment."""
        self.drafts = Drafts()
        """Actions that the agent built and has not yielded yet."""
        self._files = files
        self.inbox = Inbox()
        """Messages that arrived during the run. If the agent completes or asks without reading the newest, it is called
        again with that message."""
        self.cancelled = False
        """True once the task is canceled or ended. Async agents stop at once, sync agents at their next yield."""

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    @property
    def data(self) -> Any:
        """Value of the message's first data part, or None."""
        return next((part.data for part in self.message.parts if part.data is not UNSET), None)

    @property
    def files(self) -> tuple[Part, ...]:
        """Parts of the message that are files or links."""
        return tuple(part for part in self.message.parts if part.raw is not None or part.url is not None)

    async def read(self, part: Part) -> bytes:
        """Return the bytes of a file. Raises ValueError for a link to elsewhere and for data."""
        if self._files is not None and part.url is not None and is_stored(part):
            return await self._files.read(part.url)
        return _bytes_of(part)

    def read_now(self, part: Part) -> bytes:
        """Return the bytes of a file, for sync agents. Raises ValueError as `read` does."""
        if self._files is not None and part.url is not None and is_stored(part):
            return self._files.read_now(part.url)
        return _bytes_of(part)

    def status(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Say:
        """Return a progress report: the task stays working."""
        return self.drafts.add(Say(parts_of(content), metadata, self._declared(extensions)))

    def ask(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """Return a question to the caller. The agent is called again with the answer."""
        return self.drafts.add(Ask(parts_of(content), metadata=metadata, extensions=self._declared(extensions)))

    def ask_credentials(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """Return a request for credentials, which the caller supplies out of band."""
        uris = self._declared(extensions)
        return self.drafts.add(Ask(parts_of(content), credentials=True, metadata=metadata, extensions=uris))

    def artifact(
        self, *content: Any, id: str | None = None, name: str | None = None, description: str | None = None,
        metadata: Json | None = None, last: bool = False, extensions: Iterable[str] = (),
    ) -> Chunk:  # fmt: skip
        """Return a chunk of an artifact; the id defaults to the name."""
        chunk = Chunk(
            parts_of(content), artifact_id=id or name, name=name, description=description, metadata=metadata, last=last,
            extensions=self._declared(extensions),
        )  # fmt: skip
        return self.drafts.add(chunk)

    def reply(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reply:
        """Return a closing message. A quick agent answers a new conversation with it alone, without a task."""
        return self.drafts.add(Reply(parts_of(content), metadata, self._declared(extensions)))

    def reject(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reject:
        """Return a refusal of the task, with the reason."""
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
    """Return text, bytes, data and parts as parts. Raises WrongValue for anything else."""
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
