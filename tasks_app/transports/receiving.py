"""Bodies in an envelope: receive() reads one, identifies its caller, and handles its members within the limits of a
batch."""

import asyncio
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import orjson
from msgspec import UNSET
from msgspec.structs import replace

from a2a.choice import CallError, Endpoint
from a2a.documents import Encoded, join_pieces
from a2a.envelopes import AnyMember, BadMember, Member
from a2a.envelopes.body import nul_in
from a2a.errors import Error, InvalidRequest, ParseError
from a2a.language import Language, Method
from a2a.requests import ListTasks
from tasks_app.database.errors import Busy
from tasks_app.database.waits import CallerLeft
from tasks_app.ids import uuid7
from tasks_app.limits.accounts import Holding
from tasks_app.limits.turns import Turn
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.call import SMALL, Call, Reply
from tasks_app.transports.drain import take_back_cancellation
from tasks_app.transports.handling import handle
from tasks_app.transports.keys import is_cached
from tasks_app.transports.meaning import Selection
from tasks_app.transports.refusing import (
    EarlyChoice,
    refuse_stranger,
    refuse_unreadable,
)

BATCH_BYTES = 4_000_000
"""The limit of all answers of a batch. Members that come after it are refused without being performed."""
LIGHT = 1_000
"""Bytes of a body that may wait for the turn of its caller once it is parsed, when it takes ten times the memory."""
AT_ONCE = 16
"""Members of a batch that are handled at the same time."""
Choice = tuple[Language, Method] | CallError
"""The language of a member and its method, or the refusal."""


class Batch:
    """The replies to the members of a batch, in the order of the members (JSON-RPC 2.0, section 6)."""

    def __init__(self, call: Call, members: list[AnyMember]) -> None:
        self.request_id = call.request_id or uuid7()
        """The request id of all members."""
        self.silent = all(member.id is UNSET for member in members)
        """Whether all members are notifications, so that there is no answer."""
        self.media = call.endpoint.envelope.media(call.endpoint.neutral)
        self.member_headers: list[dict[str, str]] = []
        """The headers of members that have a reply, or a late answer under way."""
        self.call = replace(call, batch=True, request_id=self.request_id, turn=None)
        self.heads = [(member.id, member.method) for member in members]
        """The ids and methods of the members, which themselves may be large."""
        self.admissions: set[int] = set()
        """The places of the members whose handling has begun. Each of them has an exchange."""
        self.rest = len(members)
        """The number of members in memory: those that are not handled yet. One that waits for its task is dropped."""
        self.weight: Holding | None = None
        """The bytes of the request in the account of the caller, until no members are left in memory."""
        self.replies = self._handle_all(members)
        self.work = asyncio.gather(*self.replies)
        """The replies, which are in the account of the caller."""

    def hold(self, weight: Holding | None) -> None:
        """Take over the bytes of a large request from the door, which has done its part."""
        self.weight = weight
        self._free_request()

    def _free_request(self) -> None:
        if self.weight is not None and not self.rest:
            self.weight.release()

    async def payload(self) -> Encoded:
        """Return the answer to the batch when all replies are there."""
        return await join(reply.payload for reply in await self.work if reply.payload is not None)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of all members, joined, with each value once."""
        return _join([reply.headers for reply in self.work.result()] if self.work.done() else self.member_headers)

    def release(self) -> None:
        """Take replies out of the account, as a Reply does: those that there are, if the batch was cancelled."""
        if self.weight is not None:
            self.weight.release()
        for reply in self.replies:
            if reply.done() and not reply.cancelled():
                reply.result().release()

    def refuse_rest(self, error: Error) -> Encoded:
        """End the work, and return the answer in which each member without a reply has the error. It waits for nothing,
        because the server ends."""
        payloads = [self._end(place, error) for place in range(len(self.heads))]
        self.work.cancel()
        return _array([payload for payload in payloads if payload is not None])

    def _end(self, place: int, error: Error) -> Encoded | None:
        """Return the answer to a member, which is the error if there is no reply yet; None for a notification."""
        reply, (rpc_id, method) = self.replies[place], self.heads[place]
        if reply.done() and not reply.cancelled():
            return reply.result().payload
        wrapping, language = self.call.wrap(rpc_id), self.call.endpoint.early([method], self.call.caller.language)
        if place in self.admissions:  # handle() records it.
            return None if wrapping.silent else wrapping.failure(error, language).payload
        exchange = self.call.open(rpc_id, b"")
        exchange.row.method = method[:64]
        exchange.set_caller(self.call.caller)
        refusal = refuse_stranger(exchange, wrapping, error, (language, ()) if language else None)
        return None if wrapping.silent else refusal.payload

    def _handle_all(self, members: list[AnyMember]) -> list[asyncio.Task[Reply]]:
        """Handle the members, AT_ONCE at a time. Return the tasks of the replies, in the order of the members."""
        call, places, lists = self.call, asyncio.Semaphore(AT_ONCE), asyncio.Lock()
        size = 0

        async def one(place: int, member: AnyMember) -> Reply:
            nonlocal size
            async with places:
                self.admissions.add(place)
                own, member = _adapt(call, member)
                choice = _choose(own, member)
                # Lists are handled one after another, because each has a page of tasks in memory.
                async with lists if _is_list(choice) else nullcontext():
                    if size > BATCH_BYTES:
                        error = InvalidRequest(
                            detail=f"the answers of a batch may have {BATCH_BYTES} bytes in all; send the rest anew"
                        )
                        member = BadMember(id=member.id, error=error, method=member.method, source=member.source)
                        choice = _choose(own, member)
                    reply = await _reply(own, member, orjson.dumps(member.source), choice)
                    self.rest -= 1
                    self._free_request()
                    self.member_headers.append(reply.headers)
                    if reply.late:
                        del member  # The wait may be long, and the message large.
                        late, payload = reply.late, await reply.late.payload(early=False)
                        reply = replace(reply, payload=payload, late=None, holding=late.take_weight())
                    # A refusal awaits nothing. Without this, a thousand of them would be a single step of the loop.
                    await asyncio.sleep(0)
                    size += len(reply.payload or b"")
                    return reply

        return [asyncio.create_task(one(place, member)) for place, member in enumerate(members)]


async def receive(call: Call, body: bytes) -> Reply | Batch:
    """Read a body in the envelope of the endpoint, and handle its members. Raises nothing but CancelledError."""
    call.turn = await _early_turn(call, body)
    with call.turn or nullcontext():
        return await _receive(call, body)


async def _early_turn(call: Call, body: bytes) -> Turn | None:
    """Return the turn of a call whose body would take much memory if it waited for the turn once it is parsed.

    None for any other, for a caller who is not known yet, and for one who is refused in the usual way.
    """
    if not LIGHT < len(body) <= SMALL or call.evidence is None or not is_cached(call.evidence):
        return None
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # identify() raises it again, and it is reported
        call.no_caller = error
        return None
    try:
        return await call.take_turn()
    except (Busy, CallerLeft) as error:
        call.no_turn = error
        return None


async def _receive(call: Call, body: bytes) -> Reply | Batch:
    if len(body) > SMALL:
        # A large body of a stranger is not read. A small one is, because its id goes into the refusal.
        try:
            await call.identify()
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            return refuse_stranger(call.open(None, body), call.wrap(None), error)
    try:
        members = await parse(call.endpoint, body)
    except (ParseError, InvalidRequest) as error:
        return await refuse_body(call, body, error)
    return await receive_parsed(call, members, body)


async def receive_parsed(call: Call, members: AnyMember | list[AnyMember], body: bytes) -> Reply | Batch:
    """Handle the members of a body that was read. Raises nothing but CancelledError."""
    single = None if isinstance(members, list) else members
    if isinstance(single, BadMember):
        return await refuse_body(call, body, single.error, single.id, methods_of(single))
    try:
        await call.identify()
    except (Exception, asyncio.CancelledError) as raised:  # noqa: BLE001  # the database may be away; it is logged
        error = _refusal_of(call, raised)
        rpc_id = None if single is None or single.id is UNSET else single.id
        return refuse_stranger(call.open(rpc_id, body), call.wrap(rpc_id), error, early_choice(call.endpoint, members))
    return Batch(call, members) if isinstance(members, list) else await _reply(call, members, body)


def _refusal_of(call: Call, raised: Exception | asyncio.CancelledError) -> Exception:
    """Return the error for a caller who was not identified. A cancellation is raised again, unless it is that of a call
    over HTTP at the end of the server."""
    if isinstance(raised, Exception):
        return raised
    error = take_back_cancellation() if call.has_status else None
    if error is None:
        raise raised
    return error


async def parse(endpoint: Endpoint, body: bytes) -> AnyMember | list[AnyMember]:
    """Parse a body, a large one off the loop. Raises ParseError and InvalidRequest."""
    read = endpoint.envelope.parse
    members = await off_loop(read, body) if len(body) > LARGE else read(body)
    if isinstance(members, list):
        return [endpoint.require_id(member) for member in members]
    return members if members.id is not UNSET else endpoint.require_id(members)


async def _reply(call: Call, member: AnyMember, body: bytes, choice: Choice | None = None) -> Reply:
    """Handle one member. Raises nothing but CancelledError."""
    if call.adapt is not None and not call.batch:
        call, member = _adapt(call, member)
    exchange = call.open(member.id, body)

    def select() -> Selection:
        if isinstance(member, Member):
            exchange.row.method = member.method[:64]
        selection = _choose(call, member) if choice is None else choice
        if isinstance(selection, CallError):
            raise selection
        if isinstance(member, BadMember):
            raise CallError(member.error)
        language, method = selection
        if member.nul and (error := nul_in(member.params)):
            raise CallError(error, language)
        return language, method, member.params

    return await handle(call, exchange, call.wrap(member.id), select)


async def refuse_body(call: Call, body: bytes, error: Error, rpc_id: Any = None, methods: Iterable[str] = ()) -> Reply:
    """Refuse a body before its calls are handled, such as one whose envelope cannot be read.

    `methods` are those of its calls, as far as they can be read.
    """
    exchange = call.open(rpc_id, body)
    if rpc_id is None:
        exchange.row.rpc_id_type = "absent"
    return await refuse_unreadable(call, exchange, call.wrap(rpc_id), error, methods)


def methods_of(members: AnyMember | list[AnyMember]) -> list[str]:
    """Return the methods of the calls, empty where they cannot be read."""
    return [member.method for member in (members if isinstance(members, list) else [members])]


def _adapt(call: Call, member: AnyMember) -> tuple[Call, AnyMember]:
    """Return the call with the service parameters of the member, which is a bad one if they cannot be read."""
    if call.adapt is None:
        return call, member
    try:
        return call.adapt(call, member), member
    except InvalidRequest as error:
        return call, BadMember(id=member.id, error=error, method=member.method, source=member.source)


def _choose(call: Call, member: AnyMember) -> Choice:
    if isinstance(member, BadMember):
        return CallError(member.error, call.endpoint.early([member.method], call.caller.language))
    try:
        return call.endpoint.choose(member, call.version, call.caller.language)
    except CallError as error:
        return error


def early_choice(endpoint: Endpoint, members: AnyMember | list[AnyMember]) -> EarlyChoice | None:
    """Return the language in which calls without a caller are refused, and their methods; None for the neutral one."""
    names = methods_of(members)
    language = endpoint.early(names)
    if language is None:
        return None
    return language, [language.methods[name] for name in dict.fromkeys(names) if name in language.methods]


def _is_list(choice: Choice) -> bool:
    return not isinstance(choice, CallError) and choice[1].request is ListTasks


async def join(answers: Iterable[Encoded]) -> Encoded:
    """Return the answers of members as one JSON array, made off the loop if it is large."""
    payloads = list(answers)
    return await off_loop(_array, payloads) if sum(map(len, payloads)) > LARGE else _array(payloads)


def _array(payloads: list[Encoded]) -> Encoded:
    members = [part for payload in payloads for part in (b",", payload)]
    return join_pieces([b"[", *members[1:], b"]"])


def _join(headers: Iterable[dict[str, str]]) -> dict[str, str]:
    names: dict[str, dict[str, None]] = {}
    for one in headers:
        for name, value in one.items():
            names.setdefault(name, {}).update(dict.fromkeys(value.split(", ")))
    return {name: ", ".join(values) for name, values in names.items()}
