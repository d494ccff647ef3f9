"""The log of shared streams: the only writer of their state.

Each write is one transaction: it locks the head row, numbers the new chunks by a conditional update of that row, and
inserts them. So the numbers of a stream have no gaps, even if several processes write at the same time.
"""

from collections.abc import Sequence
from datetime import datetime

from django.conf import settings
from django.db import connection, transaction
from msgspec import Struct
from msgspec.structs import replace

from a2a.errors import ChunkConflict, InvalidParams, SharedStreamClosed, SharedStreamNotFound
from a2a.shared_streams import MOVES, ChunkRole, SharedStreamState
from tasks_app.database.rows import AuditRow
from tasks_app.database.tables import AUDIT
from tasks_app.database.work import Do, R
from tasks_app.hints import Reached, hints
from tasks_app.limits.caps import check_cap
from tasks_app.limits.quotas import quota
from tasks_app.models import AgentAnswer, Chunk, Participant, SharedStream
from tasks_app.shared_streams.waiting import busy_agents, wake_stream

REST = 60
"""Seconds after which an owner with too many open shared streams may try again."""
PAUSE_DETAIL = "it is paused; stream.start with its streamId resumes it"


class Place(Struct, frozen=True):
    """A place in a shared stream after a write."""

    stream_id: str
    seq: int
    """The number of its last chunk, or of the chunk that was there before."""
    state: SharedStreamState
    is_repeat: bool = False
    owes: bool = False
    """Whether there are answers for moderators to go on with."""


class Write(Do[R], frozen=True):
    """A write to a shared stream. Its followers hear of it after the commit, and the moderators of what is owed."""

    @classmethod
    def after_commit(cls, items: Sequence[Do[R]], results: Sequence[object]) -> None:
        publish([result for result in results if isinstance(result, Place) and not result.is_repeat])


def publish(places: Sequence[Place]) -> None:
    """Tell followers how far shared streams have come. Call this after the commit."""
    if places:
        hints.publish([Reached(place.stream_id, place.seq, place.state.value, place.owes) for place in places])


class Entry(Struct, frozen=True, kw_only=True):
    """A chunk to append."""

    author: str
    role: ChunkRole
    parts: str
    """The A2A 1.0 JSON of its parts."""
    at: datetime
    principal_id: int | None = None
    is_last: bool = False
    state: SharedStreamState | None = None
    """The state that it sets, if any."""
    reason: str = ""
    """The reason of that state, for the head row."""
    own_seq: int | None = None
    digest: str = ""
    task_id: str | None = None
    task_seq: int | None = None
    ends_attempt: bool = False
    """Whether it ends the chunks of an attempt, so that it is in vain where there are none."""


def begin(row: SharedStream, participants: Sequence[Participant], entry: AuditRow | None) -> None:
    """Store a new shared stream with its participants. Raises RateLimited if its owner has too many open ones."""
    with transaction.atomic(), connection.cursor() as cursor:
        _check_open(row.owner_id)
        row.save(force_insert=True)
        Participant.objects.bulk_create(participants)
        AUDIT.write(cursor, [entry] if entry else [])
    quota.add(row.owner_id, len(row.metadata or ""))


def _check_open(owner_id: int) -> None:
    open_ones = SharedStream.objects.filter(owner_id=owner_id, closed_at__isnull=True)
    check_cap(owner_id, open_ones, settings.A2A_OWNER_SHARED_STREAMS, "open shared streams", REST)


def extend(stream_id: str, participants: Sequence[Participant], entry: AuditRow | None) -> None:
    """Add participants to a shared stream, apart from those that it has.

    Raises SharedStreamNotFound, SharedStreamClosed, and InvalidParams if it would have too many.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        head = lock(stream_id)
        if head.state == SharedStreamState.CLOSED:
            raise SharedStreamClosed(streamId=stream_id)
        present = set(Participant.objects.filter(stream_id=stream_id).values_list("name", "principal_id"))
        added = [one for one in participants if (one.name, one.principal_id) not in present]
        check_room(len(present) + len(added))
        Participant.objects.bulk_create(added)
        AUDIT.write(cursor, [entry] if entry else [])


def resume(stream_id: str, participants: Sequence[Participant], change: Entry, entry: AuditRow | None) -> None:
    """Add participants to a shared stream and append the chunk that makes it active, or do neither.

    Raises the errors of extend() and append().
    """
    with transaction.atomic():
        extend(stream_id, participants, None)
        append(stream_id, [change], entry=entry)


def check_room(participants: int) -> None:
    """Check the number of participants of a shared stream. Raises InvalidParams."""
    most = settings.A2A_SHARED_STREAM_PARTICIPANTS
    if participants > most:
        raise InvalidParams(("participants", f"would be too many: a shared stream has {most} at most"))


def append(
    stream_id: str,
    entries: Sequence[Entry],
    *,
    answers: Sequence[AgentAnswer] = (),
    entry: AuditRow | None = None,
    idle_since: datetime | None = None,
) -> Place:
    """Append chunks, with the answers that agents owe to the last one. A chunk that is there already changes nothing.

    Raises SharedStreamNotFound, SharedStreamClosed for a state that does not allow it, InvalidParams and QuotaReached
    at a limit, and ChunkConflict for a number that its author has used for other content of the same message. With
    `idle_since`, a stream that has a later chunk raises SharedStreamClosed too.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        head = lock(stream_id)
        if idle_since is not None and head.active_at >= idle_since:
            raise SharedStreamClosed(streamId=stream_id, detail="it is in use")
        AUDIT.write(cursor, [entry] if entry else [])
        if len(entries) == 1 and (seq := _find_repeat(stream_id, entries[0])):
            return Place(stream_id, seq, SharedStreamState(head.state), is_repeat=True)
        check(head, entries)
        _check_quotas(head, entries)
        place = write(head, entries)
        busy = busy_agents(stream_id) if answers else set()
        for answer in answers:
            answer.stream_id, answer.seq = stream_id, place.seq
            answer.waits_since = answer.due_at if answer.agent in busy else None
        AgentAnswer.objects.bulk_create(answers)
    return replace(place, owes=place.owes or bool(answers))


def lock(stream_id: str) -> SharedStream:
    """Return the head row under a lock.

    Raises SharedStreamNotFound, and an error of the database if another transaction has locked it.
    """
    head = SharedStream.objects.select_for_update(no_key=True, nowait=True, of=("self",)).filter(pk=stream_id).first()
    if head is None:
        raise SharedStreamNotFound(streamId=stream_id)
    return head


def _find_repeat(stream_id: str, entry: Entry) -> int | None:
    """Return the number of the chunk that an entry repeats, if there is one.

    An author numbers the chunks of one message, and may begin at 1 again after its last chunk. So a chunk repeats an
    equal one with its number in the same message, or the last one of the message before. Raises ChunkConflict if the
    number belongs to other content of the same message.
    """
    if entry.own_seq is None or entry.principal_id is None:
        return None
    own = Chunk.objects.filter(stream_id=stream_id, principal_id=entry.principal_id, own_seq__isnull=False)
    # No order: SQLite would read the whole stream from its end, in place of the index by own_seq.
    same = max(own.filter(own_seq=entry.own_seq).values_list("seq", "is_last", "digest"), default=None)
    if same is None:
        return None
    seq, is_last, digest = same
    later = own.filter(seq__gt=seq)
    if later.exists() if is_last else later.filter(is_last=True).exists():
        return None
    if digest == entry.digest:
        return seq
    if is_last:
        return None  # The next message begins with the number of the last chunk before it.
    raise ChunkConflict(streamId=stream_id, sequence=str(entry.own_seq))


def check(head: SharedStream, entries: Sequence[Entry]) -> None:
    """Check that the chunks may follow. Raises SharedStreamClosed and InvalidParams."""
    state = SharedStreamState(head.state)
    for one in entries:
        if one.state is None:
            _check_active(head.pk, state)
        elif one.state not in MOVES[state]:
            detail = "it is closed" if state is SharedStreamState.CLOSED else f"it is {state.value} already"
            raise SharedStreamClosed(streamId=head.pk, detail=detail)
        else:
            state = one.state
    if all(one.state is SharedStreamState.CLOSED or (one.state and one.principal_id is None) for one in entries):
        return  # A stream at its limits can be closed, and paused and resumed by an operator.
    limits = (
        ("chunks", head.last_seq + len(entries), settings.A2A_SHARED_STREAM_CHUNKS),
        ("characters", head.size + sum(len(one.parts) for one in entries), settings.A2A_SHARED_STREAM_CHARACTERS),
    )
    for noun, number, most in limits:
        if number > most:
            sentence = f"would have {number:,} {noun} with this: a shared stream has {most:,} at most; begin another"
            raise InvalidParams(("streamId", sentence))


def _check_quotas(head: SharedStream, entries: Sequence[Entry]) -> None:
    """Check the quotas of the authors of messages and chunks, and that of the owner of the stream, in which they count.

    What agents answer is taken in all the same. Raises QuotaReached.
    """
    for author in {one.principal_id for one in entries if one.principal_id is not None and one.state is None}:
        quota.check(author)
        if author != head.owner_id:
            quota.check_other(head.owner_id, "shared stream")


def _check_active(stream_id: str, state: SharedStreamState) -> None:
    if state is SharedStreamState.PAUSED:
        raise SharedStreamClosed(streamId=stream_id, detail=PAUSE_DETAIL)
    if state is SharedStreamState.CLOSED:
        raise SharedStreamClosed(streamId=stream_id)


def write(head: SharedStream, entries: Sequence[Entry]) -> Place:
    """Number the chunks by the head row, and insert them."""
    before, last = head.last_seq, entries[-1]
    changes = [one for one in entries if one.state]
    state = changes[-1].state if changes and changes[-1].state else SharedStreamState(head.state)
    values: dict[str, object] = {
        "last_seq": before + len(entries),
        "state": state.value,
        "size": head.size + sum(len(one.parts) for one in entries),
        "active_at": last.at,
    }
    if changes:
        values["reason"] = changes[-1].reason
    if state is SharedStreamState.CLOSED:
        values["closed_at"] = last.at
        AgentAnswer.objects.filter(stream_id=head.pk, due_at__isnull=False).update(due_at=None)
    rows = SharedStream.objects.filter(pk=head.pk, last_seq=before, state=head.state)
    if rows.update(**values) != 1:
        raise RuntimeError(f"the head of shared stream {head.pk} changed under its lock")
    Chunk.objects.bulk_create(
        Chunk(
            stream_id=head.pk,
            seq=before + place,
            author=one.author,
            principal_id=one.principal_id,
            role=one.role.value,
            parts=one.parts,
            is_last=one.is_last,
            state=one.state.value if one.state else None,
            own_seq=one.own_seq,
            digest=one.digest,
            task_id=one.task_id,
            task_seq=one.task_seq,
            created_at=one.at,
        )
        for place, one in enumerate(entries, 1)
    )
    quota.add(head.owner_id, sum(len(one.parts) for one in entries))
    owes = bool(wake_stream(head.pk)) if state is SharedStreamState.ACTIVE and changes else False
    return Place(head.pk, before + len(entries), state, owes=owes)
