"""The operations on shared streams: begin or resume one, follow it, send messages and chunks to it, end or pause it."""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from a2a.agents import registry
from a2a.dialects.json.json_1_0 import dumps
from a2a.errors import Error, InvalidParams, SharedStreamClosed, SharedStreamNotFound, UnknownAgent
from a2a.requests import EndSharedStream, FollowSharedStream, SendChunk, SendToSharedStream, StartSharedStream
from a2a.shared_streams import ChunkReceipt, SharedStreamDocument, SharedStreamState
from a2a.types import Message, Part, Role
from tasks_app import clock
from tasks_app.callers.access import Caller, check_right, check_tenant
from tasks_app.callers.permissions import may_ask
from tasks_app.callers.scopes import WRITE_STREAMS
from tasks_app.database.work import DoSlowly, R
from tasks_app.ids import uuid7
from tasks_app.limits.quotas import quota
from tasks_app.models import AgentAnswer, Participant, Principal, SharedStream
from tasks_app.operations.attachments import check_references
from tasks_app.operations.operation import Context, Done, Follow, Grant
from tasks_app.shared_streams.log import Entry, Place, Write, append, begin, check_room, extend, resume
from tasks_app.shared_streams.reading import ReadSharedStream
from tasks_app.shared_streams.translation import digest_of, encode_parts, state_entry

MAX_METADATA = 65_536
"""Characters of the metadata of a shared stream."""
MAX_REASON = 1_000
"""Characters of the reason of an end."""
MAX_SEQUENCE = 2**63 - 1
QUOTE = 64
"""Characters of a name that an error repeats."""


async def start(request: StartSharedStream, context: Context) -> Grant:
    """Begin a shared stream; or resume one, and add participants."""
    check_tenant(context.caller, request.tenant)
    return Done(await _begin(request, context) if request.stream_id is None else await _resume(request, context))


async def follow(request: FollowSharedStream, context: Context) -> Grant:
    """Do what a start does, and follow the chunks from then on, or from those that the caller has seen."""
    check_tenant(context.caller, request.tenant)
    if request.stream_id is None:
        check_right(context.caller, WRITE_STREAMS, context.spelling)
        return Follow(first=await _begin(request, context))
    stream = await find(context, request.stream_id)
    is_behind = request.after is not None and request.after < stream.seq
    goes_on = request.after is not None and not request.participants
    if goes_on and (is_behind or stream.state is SharedStreamState.PAUSED):
        context.exchange.change_nothing()
        return Follow(first=stream, after=request.after)  # The rest of an ended stream, or a pause as it is.
    if stream.state is not SharedStreamState.ACTIVE or request.participants:
        check_right(context.caller, WRITE_STREAMS, context.spelling)
        after = stream.seq if request.after is None else request.after
        return Follow(first=await _resume(request, context), after=after)
    context.exchange.change_nothing()
    return Follow(first=stream, after=request.after)


async def find(context: Context, stream_id: str) -> SharedStreamDocument:
    """Return a shared stream in which the caller takes part, with no agent that its credential is not for.

    Raises SharedStreamNotFound.
    """
    context.exchange.about(None, stream_id)
    caller = context.caller
    stream = await ReadSharedStream(stream_id=stream_id, principal_id=caller.owner_id, agents=caller.agents)
    if stream is None:
        raise SharedStreamNotFound(streamId=stream_id)
    return stream


async def _begin(request: StartSharedStream, context: Context) -> SharedStreamDocument:
    caller, now = context.caller, clock.now()
    metadata = None if request.metadata is None else dumps(request.metadata)
    if metadata is not None and len(metadata) > MAX_METADATA:
        raise InvalidParams(("metadata", f"must have {MAX_METADATA:,} characters at most"))
    quota.check(caller.owner_id)
    stream_id = uuid7()
    row = SharedStream(
        id=stream_id,
        tenant_id=caller.tenant_id,
        owner_id=caller.owner_id,
        state=SharedStreamState.ACTIVE.value,
        metadata=metadata,
        created_at=now,
        active_at=now,
    )
    others = await _participants(request, caller, stream_id)
    participants = [Participant(stream_id=stream_id, name=caller.name, principal_id=caller.owner_id), *others]
    check_room(len(participants))
    context.exchange.about(None, stream_id)
    await _write(context, partial(begin, row, participants, context.exchange.entry()))
    return SharedStreamDocument(
        id=stream_id,
        state=SharedStreamState.ACTIVE,
        participants=tuple(one.name for one in participants),
        seq=0,
        created_at=now,
        metadata=request.metadata,
    )


async def _resume(request: StartSharedStream, context: Context) -> SharedStreamDocument:
    """Resume a stream if it is paused, and add the participants that it lacks."""
    if request.metadata is not None:
        raise InvalidParams(("metadata", "is set when a stream begins, and cannot be changed: leave it out"))
    stream = await find(context, request.stream_id or "")
    if stream.state is SharedStreamState.CLOSED:
        raise SharedStreamClosed(streamId=stream.id)
    caller, added = context.caller, await _participants(request, context.caller, stream.id)
    if stream.state is SharedStreamState.PAUSED:
        change = state_entry(caller.name, SharedStreamState.ACTIVE, "resumed", principal_id=caller.owner_id)
        await _write(context, partial(resume, stream.id, added, change, context.exchange.entry()))
    elif added:
        await _write(context, partial(extend, stream.id, added, context.exchange.entry()))
    else:
        context.exchange.change_nothing()
        return stream
    return await find(context, stream.id)


async def _participants(request: StartSharedStream, caller: Caller, stream_id: str) -> list[Participant]:
    """Return the participants that a caller names: agents of this server, or else accounts of its tenant.

    Raises UnknownAgent for any other name, and for an agent that the caller may not use.
    """
    names = [name for name in dict.fromkeys(request.participants) if name != caller.name or registry.get(name)]
    check_room(len(names))
    accounts = await DoSlowly(lambda: _accounts(caller.tenant_id, names), caller.owner_id)
    participants = []
    for name in names:
        agent = registry.get(name)
        if agent is not None and may_ask(caller, agent, None):
            participants.append(Participant(stream_id=stream_id, name=name))
        elif name in accounts:
            participants.append(Participant(stream_id=stream_id, name=name, principal_id=accounts[name]))
        else:
            raise UnknownAgent(agent=name[:QUOTE])
    return participants


def _accounts(tenant_id: int, names: Sequence[str]) -> dict[str, int]:
    readable = [name for name in names if "\0" not in name]
    return dict(Principal.objects.filter(tenant_id=tenant_id, name__in=readable).values_list("name", "pk"))


async def send_message(request: SendToSharedStream, context: Context) -> Grant:
    """Append a message. Each agent of the stream then owes an answer, for which the moderator calls it."""
    check_tenant(context.caller, request.tenant)
    _check_parts(request.parts)
    stream = await find(context, request.stream_id)
    caller, now = context.caller, clock.now()
    agents = await DoSlowly(lambda: _agents_of(stream.id), caller.owner_id)
    answers = [
        AgentAnswer(
            agent=name,
            principal_id=caller.owner_id,
            scopes=" ".join(sorted(caller.scopes)),
            is_limited=caller.agents is not None,
            due_at=now,
        )
        for name in agents
        if caller.agents is None or name in caller.agents  # one may have joined since
    ]
    message = _entry(request, caller, is_last=True)
    change = partial(append, stream.id, [message], answers=answers, entry=context.exchange.entry())
    return _receipt(await _write(context, change))


def _agents_of(stream_id: str) -> list[str]:
    rows = Participant.objects.filter(stream_id=stream_id, principal_id__isnull=True)
    return list(rows.order_by("pk").values_list("name", flat=True))


async def send_chunk(request: SendChunk, context: Context) -> Grant:
    """Append a chunk that the caller has numbered, unless it is there already."""
    check_tenant(context.caller, request.tenant)
    if not 0 <= request.sequence <= MAX_SEQUENCE:
        raise InvalidParams(("sequence", f"must be a whole number from 0 to {MAX_SEQUENCE}"))
    _check_parts(request.parts)
    stream = await find(context, request.stream_id)
    chunk = _entry(request, context.caller, is_last=request.is_last)
    digest = digest_of(chunk.parts, chunk.role, is_last=chunk.is_last)
    chunk = replace(chunk, own_seq=request.sequence, digest=digest)
    return _receipt(await _write(context, partial(append, stream.id, [chunk], entry=context.exchange.entry())))


def _check_parts(parts: Sequence[Part]) -> None:
    """Check the content of a participant. Raises InvalidParams."""
    if not parts:
        raise InvalidParams(("message.parts", "must have one part at least"))
    check_references(Message(message_id="", role=Role.USER, parts=tuple(parts)))


def _entry(request: SendToSharedStream, caller: Caller, *, is_last: bool) -> Entry:
    return Entry(
        author=caller.name,
        principal_id=caller.owner_id,
        role=request.role,
        parts=encode_parts(request.parts),
        at=clock.now(),
        is_last=is_last,
    )


def _receipt(place: Place) -> Done:
    return Done(ChunkReceipt(stream_id=place.stream_id, seq=place.seq, is_repeat=place.is_repeat))


async def end(request: EndSharedStream, context: Context) -> Grant:
    """Close a shared stream, or pause it."""
    check_tenant(context.caller, request.tenant)
    if len(request.reason) > MAX_REASON:
        raise InvalidParams(("reason", f"must have {MAX_REASON:,} characters at most"))
    caller, stream = context.caller, await find(context, request.stream_id)
    state = SharedStreamState.PAUSED if request.pauses else SharedStreamState.CLOSED
    change = state_entry(caller.name, state, request.reason, principal_id=caller.owner_id)
    await _write(context, partial(append, stream.id, [change], entry=context.exchange.entry()))
    return Done(await find(context, stream.id))


async def _write(context: Context, change: Callable[[], R]) -> R:
    """Write a change with its entry of the audit. A refusal has an entry of its own, which is stored with the call."""
    try:
        result: R = await Write(change)
    except Error:
        context.exchange.undo()
        raise
    return result
