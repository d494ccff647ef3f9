"""The Run that an agent receives: its message and its task, and a method for each action."""

from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Protocol

from msgspec import UNSET

from a2a.actions import Ask, Chunk, Reject, Reply, Say, parts_of
from a2a.agents import Agent
from a2a.callers import UNKNOWN_CALLER
from a2a.drafts import Drafts
from a2a.failures import BudgetSpent
from a2a.files import is_stored
from a2a.inbox import Inbox
from a2a.memory import Memory, MemoryDoor
from a2a.money import micros_of, usd
from a2a.preferences import NO_PREFERENCES, Preferences
from a2a.spending import Spending
from a2a.types import Artifact, Json, Message, Part


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
