"""The whole answer of a call: encoded, counted in the account of its owner, recorded, and with links to its files."""

from msgspec import Struct

from a2a.answers import Description, Result, TaskPage, outline_of, size_of
from a2a.documents import PIECE, Encoded, Pieces, enclose
from a2a.envelopes import Wrapping
from a2a.files import MARK
from a2a.language import Method
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.exchanges.recording import recorder
from tasks_app.files import with_links
from tasks_app.limits.accounts import Holding, account
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.operations import Context
from tasks_app.transports.call import Call, Reply


class Answered(Struct, frozen=True):
    """The whole answer of a call, which is not recorded yet, and whose files are not linked."""

    result: Result
    payload: Encoded
    weight: Holding | None
    """The bytes of the answer in the account of its owner."""
    headers: dict[str, str]


def enclose_result(wrapping: Wrapping, method: Method, result: Result) -> Encoded:
    """Return the whole answer for a result."""
    return enclose(wrapping.head, method.encode(result), wrapping.tail)


async def encode_whole(
    context: Context, exchange: OpenExchange, result: Result, *, is_owed: bool
) -> tuple[Encoded, Holding | None]:
    """Return the whole answer, and its bytes in the account of the caller if they count.

    Raises RateLimited and Unavailable for an answer that is not owed. That to a change is never refused here, because
    what was done must be answered.
    """
    if exchange.answer is not None or exchange.encode is None:
        payload = exchange.answer or b""
    else:
        payload = await off_loop(exchange.encode, result) if size_of(result) > LARGE else exchange.encode(result)
    return payload, weigh(context, len(payload), is_owed=is_owed)


def weigh(context: Context, size: int, *, is_owed: bool) -> Holding | None:
    """Return the bytes of an answer or a first frame in the account, if they count.

    The operation may have taken them before. Raises RateLimited and Unavailable for an answer that is not owed.
    """
    if not context.counts(size):
        context.release()
        return None
    weight, context.weight = context.weight, None
    if weight is None:
        owner_id = context.caller.owner_id
        return account.hold_owed(owner_id, size) if is_owed else account.hold_answer(owner_id, size)
    weight.measure(size)
    return weight


async def answer(call: Call, exchange: OpenExchange, wrapping: Wrapping, answered: Answered) -> Reply:
    """Record the result of a call, and return the reply, which is empty for a notification."""
    result, payload = answered.result, answered.payload
    if exchange.answer is None or wrapping.silent:
        exchange.answer = None
        exchange.end("notified" if wrapping.silent else "result", payload, status=204 if wrapping.silent else 200)
        await _keep(exchange, payload, result, wrapping)
    recorder.close(exchange)
    return Reply(
        request_id=exchange.request_id,
        wrapping=wrapping,
        payload=None if wrapping.silent else await _link_files(payload, call),
        headers=answered.headers,
        holding=answered.weight,
    )


async def _keep(exchange: OpenExchange, payload: Encoded, result: Result, wrapping: Wrapping) -> None:
    """Record an answer that cannot be derived from the log."""
    if exchange.row.task_id is not None or wrapping.silent:
        return
    if isinstance(result, TaskPage):
        exchange.keep_list(payload, result)
    elif isinstance(result, Description):
        exchange.keep_size(len(payload))
    elif len(payload) > LARGE and (outline := outline_of(result)) is not None:
        await off_loop(exchange.keep_outline, outline, len(payload))
    elif len(payload) > LARGE:
        await off_loop(exchange.keep, payload)
    else:
        exchange.keep(payload)


async def _link_files(payload: Encoded, call: Call) -> Encoded:
    """Replace references to files in the payload by links."""
    if isinstance(payload, bytes) and len(payload) <= PIECE and MARK not in payload:
        return payload
    return await off_loop(_with_links, payload, call) if len(payload) > LARGE else _with_links(payload, call)


def _with_links(payload: Encoded, call: Call) -> Encoded:
    return with_links(payload, call.address()) if isinstance(payload, Pieces) or MARK in payload else payload
