"""The Run that an agent receives, the actions that it yields, and the exceptions that end or repeat a run."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Protocol

import msgspec
from msgspec import UNSET, Struct

from a2a.agents import Agent
from a2a.callers import UNKNOWN_CALLER, Caller
from a2a.drafts import Drafts
from a2a.errors import BudgetExceeded
from a2a.files import is_stored
from a2a.inbox import Inbox
from a2a.memory import Memory, MemoryDoor
from a2a.mistakes import WrongValue, check_members, check_part, wrong_value
from a2a.money import micros_of, usd
from a2a.spending import Spending
from a2a.types import Artifact, Json, Message, Part


class Say(Struct, frozen=True):
    """A progress report: the task stays working, and the parts describe the progress."""

    parts: tuple[Part, ...]
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()
    position: str | None = None
    """The position of the agent after this event, as in a chunk."""


class Ask(Struct, frozen=True):
    """A question to the caller: the task is interrupted until the next message."""

    parts: tuple[Part, ...]
    credentials: bool = False
    """True for a request for credentials."""
    metadata: Json | None = None
    extensions: tuple[str, ...] = ()


class Chunk(Struct, frozen=True):
    """Parts of an artifact. Each further chunk of an attempt is appended to the artifact."""

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
    append: bool | None = None
    """True to append to the artifact, False to replace it. With None the first chunk of an attempt replaces."""
    position: str | None = None
    """The place in the stream of another server up to which the agent has passed it on. It is stored together with the
    event, so that another attempt begins there. None: no change."""


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


def plain_text(value: object) -> str:
    """Return the value as text that UTF-8 can encode, with a question mark for each lone surrogate."""
    return str(value).encode("utf-8", "replace").decode()


class Failure(Exception):
    """An exception by which an agent fails its task in its own words. The caller reads the text.

    Any other value is taken as `str` gives it, for example `raise Failure(error)`.
    """

    def __init__(self, text: object, *, reason: object = "") -> None:
        self.text = plain_text(text)
        super().__init__(self.text)
        self.reason = plain_text(reason)
        """The reason of an error of a2a/errors.py. Languages whose calls wait for the task answer with that error."""


class Retry(Failure):
    """An exception by which an agent asks to be called again, as when a model is overloaded.

    The agent is called again after `after` seconds, or else after its `backoff`, while its `attempts` allow another
    call. After that the task fails, and the caller reads the text.
    """

    def __init__(
        self, text: object = "The agent cannot do it at the moment.", *, after: float | None = None, reason: object = ""
    ) -> None:
        super().__init__(text, reason=reason)
        if after is not None and not (isinstance(after, int | float | Decimal) and 0 <= float(after) < float("inf")):
            raise ValueError(f"Retry(after=...) takes a number of seconds from 0, not {after!r}")
        self.after = None if after is None else float(after)


class BudgetSpent(Failure):
    """The exception of `run.spend` once the task has cost more than its budget. The report counts all the same."""

    def __init__(self, text: str) -> None:
        super().__init__(text, reason=BudgetExceeded.reason)


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
    """Return the value of the stored form."""
    return msgspec.json.decode(stored, type=Preferences) if stored else NO_PREFERENCES


class Files(Protocol):
    """A reader of stored files. The service provides it, since this package has no I/O."""

    async def read(self, url: str) -> bytes:
        """Return the bytes behind a reference."""

    def read_now(self, url: str) -> bytes:
        """Return the bytes behind a reference, in a thread that may block."""


class Secrets(Protocol):
    """A reader of the secrets that callers give their agents. The service provides it."""

    async def read(self, task_id: str, message_id: str) -> dict[str, str]:
        """Return the secrets of a message of a task."""


class Run:
    """One attempt of an agent at a task."""

    def __init__(
        self,
        agent: Agent,
        *,
        task_id: str,
        context_id: str,
        message: Message,
        attempt: int = 1,
        history: tuple[Message, ...] = (),
        artifacts: tuple[Artifact, ...] = (),
        conversation: tuple[Message, ...] = (),
        metadata: Json | None = None,
        preferences: Preferences = NO_PREFERENCES,
        files: Files | None = None,
        secrets: Secrets | None = None,
        spending: Spending | None = None,
        memory: MemoryDoor | None = None,
    ) -> None:
        self.agent = agent
        self.task_id = task_id
        self.context_id = context_id
        self.message = message
        """The message to answer."""
        self.attempt = attempt
        """The number of this call for the message, from 1."""
        self.history = history
        """The messages of the task, oldest first, including `message`."""
        self.artifacts = artifacts
        """The results of the task from before this run: of earlier messages, and of earlier attempts."""
        self.conversation = conversation
        """The messages, artifacts and direct replies of the context before this task, oldest first: those of the newest
        20 tasks and direct replies, a million characters at most."""
        self.metadata = metadata or {}
        """The metadata of the request that created the task."""
        self.preferences = preferences
        self.accepts = preferences.accepts
        """The media types and ranges that the sender of the message accepts; empty for all."""
        self.extensions = preferences.extensions
        """The URIs of the agent's extensions that the message requests."""
        self.caller = preferences.caller or UNKNOWN_CALLER
        """The sender of the message, with the scopes of the key at that time."""
        self.drafts = Drafts()
        """The actions that the agent has built and not yielded."""
        self._files = files
        self.memory_door = memory
        self._secrets = secrets
        self.spending = spending or Spending()
        """The cost of the task so far, and its limit."""
        self.inbox = Inbox()
        """The messages that arrive during the run. If the agent completes or asks a question without reading the newest
        one, it is called again with that message."""
        self.cancelled = False
        """True after the task was canceled or has ended. An async agent stops at once, a sync agent at its next
        yield."""

    @property
    def text(self) -> str:
        """The text of the message."""
        return self.message.text

    async def secret(self, name: str) -> str:
        """Return a secret that came with the message, such as `bot_token` of a zone; empty if there is none any more.
        No row, log line or answer contains it, so the agent must not yield it."""
        if self._secrets is None:
            return ""
        secrets = await self._secrets.read(self.task_id, self.message.message_id)
        return secrets.get(name, "")

    @property
    def data(self) -> Any:
        """The value of the message's first data part, or None."""
        return next((part.data for part in self.message.parts if part.data is not UNSET), None)

    @property
    def files(self) -> tuple[Part, ...]:
        """The parts of the message that are files or links."""
        return tuple(part for part in self.message.parts if part.raw is not None or part.url is not None)

    @property
    def budget(self) -> Decimal | None:
        """The most that the task may cost, in dollars: what the caller or a stored budget allows; None without a
        limit."""
        return None if self.spending.limit is None else usd(self.spending.limit)

    @property
    def budget_left(self) -> Decimal | None:
        """The rest of the budget, in dollars; None without a limit."""
        return None if self.spending.left is None else usd(self.spending.left)

    @property
    def spent(self) -> Decimal:
        """The sum of all reports of the task, in dollars, those of earlier attempts and messages included."""
        return usd(self.spending.spent)

    def spend(self, amount: str | float | Decimal) -> None:
        """Report what the run has just spent, in dollars. Reports add up, and each is rounded up to a millionth.

        Raises BudgetSpent once the task has cost more than its budget, and ValueError for an invalid amount and for an
        agent that declares no cost.
        """
        if self.agent.cost is None:
            raise ValueError('an agent that spends money declares what a task costs: @agent(cost=("0.01", "0.20"))')
        if not self.spending.report(micros_of(amount)):
            raise BudgetSpent(self.spending.describe())

    @property
    def memory(self) -> Memory:
        """The memory of the owner of the task, which all agents of the owner share. Raises LookupError where there is
        none."""
        if self.memory_door is None:
            raise LookupError("this run has no memory: a server gives one, and so does a2a.testing.play")
        return Memory(self.memory_door)

    async def read(self, part: Part) -> bytes:
        """Return the bytes of a file or a text. Raises ValueError for a link to another server and for data."""
        if self._files is not None and part.url is not None and is_stored(part):
            return await self._files.read(part.url)
        return _bytes_of(part)

    def read_now(self, part: Part) -> bytes:
        """Return the bytes of a file or a text, for sync agents. Raises ValueError as `read` does."""
        if self._files is not None and part.url is not None and is_stored(part):
            return self._files.read_now(part.url)
        return _bytes_of(part)

    def status(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Say:
        """Return a progress report: the task stays working."""
        return self.drafts.add(Say(parts_of(content), metadata, self._check_uris(extensions)))

    def ask(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """Return a question to the caller. The agent is called again with the answer."""
        return self.drafts.add(Ask(parts_of(content), metadata=metadata, extensions=self._check_uris(extensions)))

    def ask_credentials(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Ask:
        """Return a request for credentials, which the caller supplies out of band."""
        uris = self._check_uris(extensions)
        return self.drafts.add(Ask(parts_of(content), credentials=True, metadata=metadata, extensions=uris))

    def artifact(
        self,
        *content: Any,
        id: str | None = None,
        name: str | None = None,
        description: str | None = None,
        metadata: Json | None = None,
        last: bool = False,
        extensions: Iterable[str] = (),
    ) -> Chunk:
        """Return a chunk of an artifact. The id defaults to the name."""
        chunk = Chunk(
            parts_of(content),
            artifact_id=id or name,
            name=name,
            description=description,
            metadata=metadata,
            last=last,
            extensions=self._check_uris(extensions),
        )
        return self.drafts.add(chunk)

    def reply(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reply:
        """Return a closing message. A quick agent answers a new conversation with it alone, without a task."""
        return self.drafts.add(Reply(parts_of(content), metadata, self._check_uris(extensions)))

    def reject(self, *content: Any, metadata: Json | None = None, extensions: Iterable[str] = ()) -> Reject:
        """Return a refusal of the task, with the reason."""
        return self.drafts.add(Reject(parts_of(content), metadata, self._check_uris(extensions)))

    def _check_uris(self, extensions: Iterable[str]) -> tuple[str, ...]:
        """Return the URIs as a tuple. Raises ValueError for an extension that the agent does not declare."""
        uris = tuple(extensions)
        for uri in uris:
            if all(uri != extension.uri for extension in self.agent.extensions):
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
    """Return each value as a part. Raises WrongValue as `part_of` does."""
    return tuple(part_of(value) for value in content)


def part_of(value: Any) -> Part:
    """Return text, bytes, JSON data or a part as a part. Raises WrongValue for any other type."""
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
            raise wrong_value(value)


def action_of(value: Any) -> Action:
    """Return the action of a yielded or returned value. Raises WrongValue for an action without content, with an
    invalid part or with an invalid id, and for any other value that is not content."""
    action = _action_of(value)
    if not action.parts:
        raise WrongValue(f"gives run.{_MAKERS[type(action)]}() without content: give it at least one part")
    if isinstance(action, Chunk) and not isinstance(action.artifact_id, str | None):
        raise WrongValue(f"gives an artifact whose id is not a string, but of type {type(action.artifact_id).__name__}")
    check_members(f"run.{_MAKERS[type(action)]}()", action)
    for part in action.parts:
        check_part(part)
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
