"""Streams that break: taken up again after the last event, each event once, until the task ends."""

import asyncio
from typing import Any

import pytest

from a2a.client import Client, Retries, SyncClient, Timeouts, Update, errors, text_of
from a2a.client.stream import Stream
from tests.client_library.faulty import (
    Act,
    FakeClock,
    chunk,
    drop,
    error,
    events,
    faulty,
    plain,
    result,
    rpc,
    stall,
    status,
    task,
)
from tests.conftest import Server

WORKING, DONE, ASKS = "TASK_STATE_WORKING", "TASK_STATE_COMPLETED", "TASK_STATE_INPUT_REQUIRED"
BEGIN = {"task": task(WORKING)}


async def read(stream: Stream) -> list[Update]:
    return [update async for update in stream]


def text(updates: list[Update]) -> str:
    return "".join(update.text for update in updates)


async def test_a_stream_gives_its_updates_and_ends_with_the_task() -> None:
    whole = events(("1", BEGIN), ("2", chunk("Hel")), ("3", chunk("lo")), ("4", status(DONE)), silent=True)
    async with faulty(whole) as server, rpc(server, FakeClock()) as client:
        stream = client.stream("Hi")
        updates = await read(stream)
    assert [update.id for update in updates] == ["1", "2", "3", "4"]
    assert (text(updates), updates[-1].state) == ("Hello", "completed")
    assert stream.task is not None
    assert [part.text for artifact in stream.task.artifacts for part in artifact.parts] == ["Hello"]
    assert server.asked[0].wire["method"] == "SendStreamingMessage"


def test_a_client_leaves_streams_that_an_error_has_left_unfinished() -> None:
    """At its end an event loop closes all generators at once, and reports those that another one is closing."""
    reports: list[Any] = []

    async def read_one() -> None:
        script = events(("1", BEGIN), ("2", chunk("Hel")), silent=True)
        async with faulty(script) as server, rpc(server, FakeClock()) as client:
            async for _ in client.stream("Hi"):
                raise LookupError

    with asyncio.Runner() as runner:
        runner.get_loop().set_exception_handler(lambda loop, context: reports.append(context))
        with pytest.raises(LookupError) as error:
            runner.run(read_one())
    assert error.tb, "whose frames keep the stream"
    assert reports == []


def test_a_client_without_async_leaves_its_streams(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    def read_one() -> None:
        with SyncClient(f"{server.url}/agents/story/", token=server.owner) as client:
            for _ in client.stream("Hi"):
                raise LookupError

    with pytest.raises(LookupError) as error:
        read_one()
    assert error.tb, "whose frames keep the stream"
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


async def test_streams_are_left_beside_a_task_that_reads_one() -> None:
    script = events(("1", BEGIN), silent=True)
    async with faulty(script) as server:
        client = rpc(server, FakeClock(), retries=Retries(times=0, reconnects=0))
        stream = client.stream("Hi")
        assert (await anext(aiter(stream))).id == "1"
        reading = asyncio.create_task(anext(aiter(stream)))
        await asyncio.sleep(0)
        await client.leave_streams()
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await client.close()


async def test_a_broken_stream_resumes_after_the_last_id() -> None:
    fake = FakeClock()
    script = [
        events(("1", BEGIN), ("2", chunk("Hel"))),
        drop,
        events(("2", {"task": task(WORKING, ["Hel"])}), ("3", chunk("lo")), ("4", status(DONE))),
    ]
    async with faulty(*script) as server, rpc(server, fake) as client:
        updates = await read(client.stream("Hi"))
    assert [update.id for update in updates] == ["1", "2", "3", "4"]
    assert text(updates) == "Hello"
    again = server.asked[2]
    assert (again.wire["method"], again.wire["params"]) == ("SubscribeToTask", {"id": "t"})
    assert again.headers["last-event-id"] == "2"
    assert fake.pauses == [0.1, 0.2]


async def test_a_server_without_ids_is_compared_with_what_is_there() -> None:
    script = [
        events((None, BEGIN), (None, chunk("Hel"))),
        events((None, {"task": task(WORKING, ["Hel", "lo ", "th"])}), (None, chunk("ere"))),
        events((None, {"task": task(WORKING, ["Hello there"])}), (None, status(DONE))),
    ]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        stream = client.stream("Hi")
        updates = await read(stream)
    assert [update.text for update in updates] == ["", "Hel", "lo th", "ere", ""]
    assert stream.task is not None
    assert stream.task.status.state == "completed"


async def test_a_piece_that_a_snapshot_has_already_is_not_given_again() -> None:
    script = [
        events((None, BEGIN), (None, chunk("1 "))),
        events((None, {"task": task(WORKING, ["1 ", "2 "])}), (None, chunk("2 ")), (None, chunk("2 "))),
        events((None, {"task": task(WORKING, ["1 2 2 3 "])}), (None, chunk("3 ")), (None, status(DONE))),
        result(task(DONE, ["1 2 2 3 "])),
    ]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        assert text(await read(client.stream("Hi"))) == "1 2 2 3 "


async def test_text_around_a_gap_is_put_right_at_the_end() -> None:
    script = [
        events((None, BEGIN), (None, chunk("1 "))),
        events((None, {"task": task(WORKING, ["1 ", "2 "])}), (None, chunk("lost")), (None, status(DONE))),
        result(task(DONE, ["1 2 3 "])),
    ]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        stream = client.stream("Hi")
        updates = await read(stream)
    assert stream.task is not None
    assert text_of(stream.task) == "1 2 3 "
    assert [update.state for update in updates].count("completed") == 1


async def test_text_of_a_server_that_sends_its_events_again_is_put_right_at_the_end() -> None:
    begin = [("1", BEGIN), ("2", chunk("1 "))]
    script = [
        events(*begin),
        events(*begin, ("3", chunk("2 ")), ("4", status(DONE))),
        result(task(DONE, ["1 2 "])),
    ]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        stream = client.stream("Hi")
        updates = await read(stream)
    assert stream.task is not None
    assert text_of(stream.task) == "1 2 "
    assert [update.state for update in updates].count("completed") == 1


async def test_a_task_that_ended_while_the_stream_was_broken_is_fetched() -> None:
    refusals: list[Act] = [error(-32004, "This operation is not supported"), error(-32602, "Task is terminal")]
    for refusal in refusals:
        script = [events((None, BEGIN), (None, chunk("Hel"))), refusal, result(task(DONE, ["Hello"]))]
        async with faulty(*script) as server, rpc(server, FakeClock()) as client:
            updates = await read(client.stream("Hi"))
        assert text(updates) == "Hello"
        assert updates[-1].state == "completed"
        assert [asked.wire["method"] for asked in server.asked][1:] == ["SubscribeToTask", "GetTask"]


async def test_a_task_that_ended_is_found_where_its_server_breaks_streams_off() -> None:
    script = [events((None, BEGIN)), drop, drop, result(task(DONE, ["Hello"]))]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        assert text(await read(client.stream("Hi"))) == "Hello"


async def test_a_stream_that_broke_before_its_first_event_is_sent_again_under_one_id() -> None:
    fake = FakeClock()
    script = [drop, plain(503), events(("1", {"task": task()}))]
    async with faulty(*script) as server, rpc(server, fake) as client:
        assert len(await read(client.stream("Hi"))) == 1
    assert len({asked.wire["params"]["message"]["messageId"] for asked in server.asked}) == 1
    assert fake.pauses == [0.1, 0.2]


async def test_a_stream_is_not_sent_again_where_a_message_must_not_be() -> None:
    async with faulty(drop) as server, rpc(server, FakeClock(), retries=Retries(resend=False)) as client:
        with pytest.raises(errors.ConnectionLost):
            await read(client.stream("Hi"))
    assert len(server.asked) == 1


async def test_a_stream_that_brings_nothing_new_is_given_up() -> None:
    fake = FakeClock()
    script = [events(("1", BEGIN)), drop]
    async with faulty(*script) as server, rpc(server, fake, retries=Retries(reconnects=4)) as client:
        with pytest.raises(errors.StreamLost, match="4 reconnections brought nothing new, after the event 1"):
            await read(client.stream("Hi"))
    methods = [asked.wire["method"] for asked in server.asked]
    assert (methods.count("SubscribeToTask"), methods.count("GetTask")) == (4, 1)
    assert fake.pauses == [0.1, 0.2, 0.4, 0.8]


async def test_each_event_renews_the_patience() -> None:
    fake = FakeClock()
    pieces = [events(("1", BEGIN)), *(events((str(place), chunk("x"))) for place in range(2, 8))]
    async with (
        faulty(*pieces, events(("8", status(DONE)))) as server,
        rpc(server, fake, retries=Retries(reconnects=1)) as client,
    ):
        assert text(await read(client.stream("Hi"))) == "xxxxxx"
    assert fake.pauses == [0.1] * 7


async def test_a_silent_stream_is_taken_up_again_as_long_as_its_server_answers() -> None:
    fake = FakeClock()
    quiet = events(("1", BEGIN), silent=True)
    script = [quiet, quiet, quiet, quiet, events(("1", BEGIN), ("2", status(DONE)))]
    patience = {"timeouts": Timeouts(silence=0.5), "retries": Retries(reconnects=1)}
    async with faulty(*script) as server, rpc(server, fake, **patience) as client:
        updates = await read(client.stream("Hi"))
    assert [update.id for update in updates] == ["1", "2"]
    assert len(server.asked) == 5


async def test_a_server_that_accepts_and_never_answers_is_given_up() -> None:
    # Long enough for a busy machine to answer the first time.
    patience = {"timeouts": Timeouts(silence=1), "retries": Retries(reconnects=2)}
    async with faulty(events(("1", BEGIN)), stall) as server, rpc(server, FakeClock(), **patience) as client:
        with pytest.raises(errors.StreamLost, match="no answer in time"):
            await read(client.stream("Hi"))
    assert len(server.asked) == 3


async def test_the_server_says_when_to_come_back() -> None:
    fake = FakeClock()
    script = [events(("1", BEGIN), retry=2000), plain(503, Retry_After="5"), events(("2", status(DONE)))]
    async with faulty(*script) as server, rpc(server, fake) as client:
        await read(client.stream("Hi"))
    assert fake.pauses == [2.0, 5.0]


async def test_a_question_ends_the_stream_of_a_message_but_no_subscription() -> None:
    fake = FakeClock()
    asks = events(("1", BEGIN), ("2", status(ASKS)))
    async with faulty(asks) as server, rpc(server, fake) as client:
        assert [update.id for update in await read(client.stream("Hi"))] == ["1", "2"]
    script = [asks, events(("2", {"task": task(ASKS)}), ("3", status(WORKING)), ("4", status(DONE)))]
    async with faulty(*script) as server, rpc(server, fake) as client:
        assert [update.id for update in await read(client.subscribe("t"))] == ["1", "2", "3", "4"]


async def test_a_bare_reply_is_the_only_update() -> None:
    said = {"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "Hello"}]}}
    async with faulty(events((None, said), silent=True)) as server, rpc(server, FakeClock()) as client:
        stream = client.stream("Hi")
        assert text(await read(stream)) == "Hello"
    assert stream.task is None


async def test_a_refusal_is_raised_and_not_repeated() -> None:
    async with faulty(error(-32602, "Invalid parameters")) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.InvalidParams):
            await read(client.stream("Hi"))
    assert len(server.asked) == 1
    script = [events(("1", BEGIN)), plain(401), result(task(WORKING))]
    async with faulty(*script) as server, rpc(server, FakeClock()) as client:
        with pytest.raises(errors.Unauthenticated):
            await read(client.stream("Hi"))


async def test_an_event_that_is_too_large_ends_the_stream() -> None:
    huge = events(("1", BEGIN), ("2", chunk("x" * 900_000)))
    async with faulty(huge) as server, rpc(server, FakeClock(), largest=100_000) as client:
        with pytest.raises(errors.InvalidResponse, match="one event has more than 100000 bytes"):
            await read(client.stream("Hi"))
    small = events(("1", BEGIN), *((str(place), chunk("x" * 9_000)) for place in range(2, 50)), ("50", status(DONE)))
    async with faulty(small) as server, rpc(server, FakeClock(), largest=100_000) as client:
        assert len(await read(client.stream("Hi"))) == 50


async def test_a_stream_may_be_left() -> None:
    endless = events(("1", BEGIN), ("2", chunk("x")), silent=True)
    async with faulty(endless) as server, rpc(server, FakeClock()) as client, client.stream("Hi") as stream:
        async for update in stream:
            if update.id == "2":
                break
    assert stream.last_id == "2"
    assert isinstance(client, Client)
