"""Batches and notifications."""

from uuid import uuid4

from tests.support.story import Cast, chapter


@chapter("batch")
async def a_batch_is_answered_in_its_order_without_its_notifications(cast: Cast) -> None:
    second = cast.me.call("send", cast.me.sending("two", agent="echo"))
    del second["id"]
    wires = [
        cast.me.call("send", cast.me.sending("one", agent="form-coroutine")),
        cast.me.call("nope", {}),
        second,
        cast.me.call("stream", cast.me.sending("three", agent="echo")),
        cast.me.call("get", {"id": "missing"}),
        cast.me.call("list", cast.me.listing(size=1)),
    ]
    status, answers = await cast.me.post(wires)
    assert status == 200
    assert [answer["id"] for answer in answers] == [wire["id"] for wire in wires if "id" in wire]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, -32601, -32600, -32001, None]


@chapter("batch")
async def a_notification_is_done_and_not_answered(cast: Cast) -> None:
    context = f"notified-{uuid4()}"
    wire = cast.me.call("send", cast.me.sending("hello", agent="echo", context=context))
    del wire["id"]
    assert await cast.me.post(wire) == (204, None)
    assert await cast.me.post([wire, wire]) == (204, None)

    async def count() -> int:
        total: int = cast.me.page(await cast.me.ask("list", cast.me.listing(context=context)))[2]
        return total

    assert await cast.me.settle(count, 1) == 1
    assert await cast.me.post({"jsonrpc": "2.0", "method": "nope"}) == (204, None)
