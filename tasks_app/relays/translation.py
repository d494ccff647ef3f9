"""Translation between a task here and the remote task: messages there, events and errors back."""

import uuid
from collections.abc import AsyncIterator, Iterator

import orjson
from msgspec import UNSET
from msgspec.structs import replace

from a2a.actions import Action, Ask, Chunk, Reject, Reply, Say
from a2a.client import ClientError, errors
from a2a.events import ArtifactAdded, StatusChanged
from a2a.failures import Failure, Retry
from a2a.files import SCHEME, is_stored
from a2a.run import Run
from a2a.states import TaskState
from a2a.types import Json, Message, Part, Role
from tasks_app.masking import mask_text
from tasks_app.outbound.policy import Blocked, Unknown

_NAMES = uuid.UUID("6f0b6a52-8d0e-5b0f-9a53-3f1d3a4f7c11")
"""The namespace of ids that are derived from ours."""
Content = tuple[Json | None, tuple[str, ...]]
"""The metadata and the extensions of a message."""
WORDS = 300
"""Characters of a remote error that the caller sees."""


def derived_id(*names: str) -> str:
    """Return an id that is always the same for the same names, and that does not reveal them."""
    return str(uuid.uuid5(_NAMES, orjson.dumps(names).decode()))


# ---------------------------------------------------------------- to there


async def outgoing(run: Run, message: Message, *, remote_id: str | None, remote_context: str | None) -> Message:
    """Return a message for the remote agent. Every attempt gives the same one."""
    context = remote_context or derived_id(
        "context", run.agent.name, run.caller.tenant, run.caller.name, run.context_id
    )
    return Message(
        message_id=message_id_of(run.task_id, message),
        role=Role.USER,
        parts=tuple([part async for part in _parts(run, message)]),
        context_id=context,
        task_id=remote_id,
        metadata=message.metadata,
    )


def message_id_of(task_id: str, message: Message) -> str:
    """Return the id under which a message is sent on. All attempts use the same one."""
    return derived_id("message", task_id, message.message_id)


async def _parts(run: Run, message: Message) -> AsyncIterator[Part]:
    """Yield the parts of a message, with the bytes of stored files."""
    for part in message.parts:
        yield replace(part, url=None, raw=await run.read(part)) if is_stored(part) else part


def metadata_of(run: Run) -> Json | None:
    """Return the metadata of the call without the choice of the agent here."""
    return {name: value for name, value in run.metadata.items() if name != "agent"} or None


# -------------------------------------------------------------------- back


def actions_of(event: StatusChanged | ArtifactAdded, position: str | None) -> Iterator[Action]:
    """Yield the action for a remote event; none for one without content. Raises Failure if the remote task has ended
    in a way that no action expresses."""
    if isinstance(event, ArtifactAdded):
        yield from _chunks(event, position)
        return
    message = event.status.message
    parts = own_parts(message.parts) if message else ()
    more: Content = (message.metadata, message.extensions) if message else (None, ())
    match event.status.state:
        case TaskState.SUBMITTED | TaskState.WORKING:
            if parts:
                yield Say(parts, *more, position)
        case TaskState.INPUT_REQUIRED:
            yield Ask(parts or _text("The agent asks for input."), False, *more)
        case TaskState.AUTH_REQUIRED:
            yield Ask(parts or _text("The agent asks for credentials."), True, *more)
        case ended:
            yield from _endings(ended, parts, more)


def _endings(state: TaskState, parts: tuple[Part, ...], more: "Content") -> Iterator[Action]:
    """Yield the action for the end of the remote task; none for a completion without a message. Raises Failure."""
    match state:
        case TaskState.REJECTED:
            yield Reject(parts or _text("The agent rejected the task."), *more)
        case TaskState.FAILED:
            raise Failure(_words(parts) or "The agent failed, and gave no reason.")
        case TaskState.CANCELED:
            raise Failure(f"The task was canceled on the agent's server. {_words(parts)}".strip())
        case _:
            if parts:
                yield Reply(parts, *more)


def reply_of(message: Message) -> Reply:
    """Return the action for a direct reply."""
    return Reply(own_parts(message.parts) or _text("The agent replied without content."), message.metadata)


def _chunks(event: ArtifactAdded, position: str | None) -> Iterator[Chunk]:
    artifact = event.artifact
    if artifact.parts:
        yield Chunk(
            own_parts(artifact.parts),
            artifact_id=artifact.artifact_id,
            name=artifact.name,
            description=artifact.description,
            metadata=artifact.metadata,
            last=event.last_chunk,
            extensions=artifact.extensions,
            append=event.append,
            position=position,
        )


def own_parts(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of a remote agent. Raises Failure for a reference to a file of this server, which only this
    server may make."""
    if any(part.url is not None and part.url.startswith(SCHEME) for part in parts):
        raise Failure("The agent's answer names a file of this server.")
    return parts


def _text(sentence: str) -> tuple[Part, ...]:
    return (Part(text=sentence, media_type="text/plain"),)


def _words(parts: tuple[Part, ...]) -> str:
    """Return what a sentence can say of the parts: their texts, and their data as JSON."""
    pieces = [part.text if part.data is UNSET else orjson.dumps(part.data).decode() for part in parts]
    return "\n".join(piece for piece in pieces if piece)


# ------------------------------------------------------------------ errors


CREDENTIALS = (errors.Unauthenticated, errors.MissingScope, errors.PermissionDenied, errors.NoToken)
"""The refusals of the credentials of a relay."""
_PASSING: tuple[tuple[type[ClientError] | tuple[type[ClientError], ...], str], ...] = (
    ((errors.ConnectionRefused, errors.ConnectTimeout), "The remote agent cannot be reached."),
    (errors.NoToken, "The remote agent's token endpoint gave no token."),
    (errors.NoRoom, "Too many large answers of the remote agent are still arriving."),
    (errors.LargeMessageLost, "The connection to the remote agent was lost: the message may be larger than it takes."),
    (errors.ServerError, "The remote agent cannot do it at the moment ({reason})."),
    (ClientError, "The connection to the remote agent was lost ({reason})."),
)
"""The sentences for errors that may pass. The first match counts."""
_FINAL: tuple[tuple[type[ClientError] | tuple[type[ClientError], ...], str], ...] = (
    (CREDENTIALS, "The credentials for the remote agent are missing or do not suffice ({reason})."),
    (errors.TaskNotFound, "The remote agent no longer has the task. Its results so far are kept."),
    (errors.NoInterface, "The card of the remote agent has no interface that this server can call."),
    (errors.UntrustedServer, "The certificate of the remote agent's server is not valid."),
    (errors.ServerError, "The remote agent refused the message ({reason}): {what}."),
    (errors.InvalidResponse, "The answer of the remote agent is not A2A, or it is too large."),
    (ClientError, "The call of the remote agent failed ({reason})."),
)
"""The sentences for all other errors. The first match counts."""


def failure_of(error: ClientError | Blocked | Unknown) -> Failure:
    """Return the failure of the run for an error of a call: a Retry if it may pass. It has no address and no secret;
    the traceback of the run, for operators, has the address."""
    if isinstance(error, Blocked):
        return Failure("The address of the remote agent is not allowed here: see A2A_OUTBOUND_HOSTS.")
    if isinstance(error, Unknown):
        return Retry("The host of the remote agent was not found.")
    # A large message is not sent again at once, but the next attempt may find a better connection.
    passes = error.retryable or isinstance(error, errors.StreamLost | errors.LargeMessageLost)
    sentence = next(words for kinds, words in (_PASSING if passes else _FINAL) if isinstance(error, kinds))
    sentence = sentence.format(reason=error.reason, what=mask_text(error.what)[:WORDS].rstrip("."))
    return Retry(sentence, after=error.retry_after) if passes else Failure(sentence)
