"""A body in an envelope: read, its caller identified, its members handled, within the bounds of a batch."""

import asyncio
from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any

import orjson
from msgspec import UNSET
from msgspec.structs import replace

from a2a.choice import CallError
from a2a.documents import Encoded, join_pieces
from a2a.envelopes import AnyMember, BadMember, Envelope
from a2a.envelopes.body import nul_in
from a2a.errors import Error, InvalidRequest, ParseError
from a2a.language import Language, Method
from a2a.requests import ListTasks
from tasks_app.ids import uuid7
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.transports.call import SMALL, Call, Reply
from tasks_app.transports.handling import Understood, handle, unidentified, unreadable

BATCH_BYTES = 4_000_000
"""Members whose turn comes after so much has been answered are refused, undone."""
AT_ONCE = 16
"""Members of a batch that are worked on at the same time."""
Choice = tuple[Language, Method] | CallError
"""The language of a member and its method, or why there is none."""


class Batch:
    """The replies to the members of a batch, in the order of the members (JSON-RPC 2.0, section 6)."""

    def __init__(self, call: Call, members: list[AnyMember]) -> None:
        self.request_id = call.request_id or uuid7()
        """The id that all members share."""
        self.silent = all(member.id is UNSET for member in members)
        """All are notifications: nothing is answered."""
        self.media = call.endpoint.envelope.media(call.endpoint.neutral)
        self.echoes: list[dict[str, str]] = []
        """Headers that the members add, as far as they were begun."""
        self.work = asyncio.ensure_future(self._all(replace(call, batch=True, request_id=self.request_id), members))
        """The replies. The places of large ones in the account are held by it."""

    async def payload(self) -> Encoded:
        """Return the replies as one, when all are there."""
        payloads = [reply.payload for reply in await self.work if reply.payload is not None]
        return await off_loop(_array, payloads) if sum(map(len, payloads)) > LARGE else _array(payloads)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of the members in one: what any of them names, once."""
        return _joined([reply.headers for reply in self.work.result()] if self.work.done() else self.echoes)

    def release(self) -> None:
        """Take large replies out of the account of their caller, as a Reply does."""
        for reply in self.work.result():
            reply.release()

    async def _all(self, call: Call, members: list[AnyMember]) -> list[Reply]:
        """Answer the members, some at a time, in their order."""
        slots, lists = asyncio.Semaphore(AT_ONCE), asyncio.Lock()
        size = 0

        async def one(member: AnyMember) -> Reply:
            nonlocal size
            choice = _choose(call, member)
            # Lists come one after another: what they have in flight is as large as a page each.
            async with slots, lists if _is_list(choice) else nullcontext():
                if size > BATCH_BYTES:
                    error = InvalidRequest(
                        detail=f"the answers of a batch may have {BATCH_BYTES} bytes in all; send the rest anew"
                    )
                    member = BadMember(id=member.id, error=error, source=member.source)
                    choice = CallError(error)
                reply = await _reply(call, member, orjson.dumps(member.source), choice)
                self.echoes.append(reply.headers)
                if reply.late:
                    del member  # A wait may be long, and the message large.
                    reply = replace(reply, payload=await reply.late.payload(started=False), late=None)
                # A refusal waits for nothing: a thousand of them would be one step of the loop.
                await asyncio.sleep(0)
                size += len(reply.payload or b"")
                return reply

        replies = asyncio.gather(*map(one, members))
        del members
        return await replies


async def receive(call: Call, body: bytes) -> Reply | Batch:
    """Read a body in the envelope of the endpoint, and handle what it holds."""
    if len(body) > SMALL:
        # What a stranger sends is not worth reading. A small body is, for its id: it comes back with the refusal.
        try:
            await call.identify()
        except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
            return unidentified(call.open(None, body), call.wrap(None), error)
    try:
        members = await _parsed(call.endpoint.envelope, body)
    except (ParseError, InvalidRequest) as error:
        return await _unreadable(call, body, error)
    single = None if isinstance(members, list) else members
    if isinstance(single, BadMember):
        return await _unreadable(call, body, single.error, single.id)
    try:
        await call.identify()
    except Exception as error:  # noqa: BLE001  # the database may be away; logged with its reference
        rpc_id = None if single is None or single.id is UNSET else single.id
        return unidentified(call.open(rpc_id, body), call.wrap(rpc_id), error)
    return Batch(call, members) if isinstance(members, list) else await _reply(call, members, body)


async def _parsed(envelope: Envelope, body: bytes) -> AnyMember | list[AnyMember]:
    return await off_loop(envelope.parse, body) if len(body) > LARGE else envelope.parse(body)


async def _reply(call: Call, member: AnyMember, body: bytes, choice: Choice | None = None) -> Reply:
    """Handle one member. Never raises."""
    exchange = call.open(member.id, body)

    def understand() -> Understood:
        if isinstance(member, BadMember):
            raise CallError(member.error)
        exchange.row.method = member.method[:64]
        chosen = _choose(call, member) if choice is None else choice
        if isinstance(chosen, CallError):
            raise chosen
        language, method = chosen
        if member.nul and (error := nul_in(member.params)):
            raise CallError(error, language)
        return language, method, member.params

    return await handle(call, exchange, call.wrap(member.id), understand)


async def _unreadable(call: Call, body: bytes, error: Error, rpc_id: Any = None) -> Reply:
    """Refuse an envelope that cannot be read."""
    exchange = call.open(rpc_id, body)
    if rpc_id is None:
        exchange.row.rpc_id_type = "absent"
    return await unreadable(call, exchange, call.wrap(rpc_id), error)


def _choose(call: Call, member: AnyMember) -> Choice:
    if isinstance(member, BadMember):
        return CallError(member.error)
    try:
        return call.endpoint.choose(member, call.version, call.caller.language)
    except CallError as refused:
        return refused


def _is_list(choice: Choice) -> bool:
    return not isinstance(choice, CallError) and choice[1].request is ListTasks


def _array(payloads: list[Encoded]) -> Encoded:
    members = [part for payload in payloads for part in (b",", payload)]
    return join_pieces([b"[", *members[1:], b"]"])


def _joined(echoes: Iterable[dict[str, str]]) -> dict[str, str]:
    names: dict[str, dict[str, None]] = {}
    for echo in echoes:
        for name, value in echo.items():
            names.setdefault(name, {}).update(dict.fromkeys(value.split(", ")))
    return {name: ", ".join(values) for name, values in names.items()}
