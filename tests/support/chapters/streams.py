"""Streams: whole, joined in the middle, and resumed."""

from uuid import uuid4

from tests.support.chapters.answers import folded, refusal, text_of, working
from tests.support.speaker import Frame
from tests.support.story import Cast, chapter


@chapter()
async def a_stream_shows_the_task_and_then_every_event_in_order(cast: Cast) -> None:
    frames = await cast.me.follow("stream", cast.me.sending("hello", agent="form-async-generator"))
    assert [frame.kind for frame in frames] == ["task", "status", "status", "artifact", "status"]
    assert [frame.seq for frame in frames] == [1, 2, 3, 4, 5]
    cast.me.is_task(frames[0].value)
    ids = {(frame.value["taskId"], frame.value["contextId"]) for frame in frames[1:]}
    assert ids == {(frames[0].value["id"], frames[0].value["contextId"])}
    task = await cast.me.get(frames[0].value["id"])
    assert folded(frames) == {"text": text_of(task), "status": task["status"]}


@chapter()
async def many_small_chunks_fold_to_the_whole_text(cast: Cast) -> None:
    frames = await cast.me.follow("stream", cast.me.sending("hello", agent="chatty"))
    task = await cast.me.get(frames[0].value["id"])
    assert folded(frames)["text"] == text_of(task) == "".join(f"{number} " for number in range(200))


@chapter()
async def a_second_client_joins_in_the_middle_and_sees_the_same_end(cast: Cast) -> None:
    mine: list[Frame] = []
    theirs: list[Frame] = []
    async with cast.me.stream("stream", cast.me.sending("hello", agent="gate")) as frames:
        async for frame in frames:
            mine.append(frame)
            if frame.kind == "artifact" and len(theirs) == 0:
                task_id = mine[0].value["id"]
                async with cast.again.stream("subscribe", {"id": task_id}) as others:
                    theirs.append(await anext(others))
                    await cast.me.send("middle", task=task_id, now=True)
                    await cast.again.send("stop", task=task_id, now=True)
                    theirs += [other async for other in others]
    assert theirs[0].kind == "task"
    assert folded(mine) == folded(theirs)
    assert folded(mine)["text"] == "begin middle end"
    later = [frame for frame in mine if (frame.seq or 0) > (theirs[0].seq or 0)]
    assert [(frame.seq, frame.wire) for frame in later] == [(frame.seq, frame.wire) for frame in theirs[1:]]


@chapter()
async def a_client_that_lost_its_stream_comes_back_with_its_last_event(cast: Cast) -> None:
    async with cast.me.stream("stream", cast.me.sending("hello", agent="gate")) as frames:
        seen = [await anext(frames), await anext(frames)]
    task_id = seen[0].value["id"]
    await working(cast.me, task_id, "begin")
    await cast.me.send("stop", task=task_id)
    resumed = await cast.again.follow("subscribe", {"id": task_id}, **{"Last-Event-ID": str(seen[-1].seq)})
    numbers = [frame.seq or 0 for frame in resumed]
    assert numbers[0] == seen[-1].seq
    assert numbers == sorted(set(numbers))  # the caller's own message has a number, and is not shown
    task = await cast.me.get(task_id)
    assert folded(resumed) == folded(seen + resumed[1:]) == {"text": text_of(task), "status": task["status"]}


@chapter()
async def a_last_event_that_is_no_number_is_refused_before_anything_is_done(cast: Cast) -> None:
    sending = cast.me.sending("hello", agent="echo", id=f"wrong-place-{uuid4()}")
    for garbage in ("abc", "-1", "1e3", "9" * 30, "0x1", "1.5"):
        error = await refusal(cast.me.follow("stream", sending, **{"Last-Event-ID": garbage}))
        assert error["code"] == -32600
        assert "must be a whole number, that of the last event you have seen" in str(error), error
    assert [frame.seq for frame in await cast.me.follow("stream", sending, **{"Last-Event-ID": ""})] == [1, 2, 3, 4]


@chapter()
async def the_stream_of_a_send_ends_with_a_question_and_that_of_a_subscription_in_0_x_alone(cast: Cast) -> None:
    frames = await cast.me.follow("stream", cast.me.sending("one", agent="asks"))
    assert cast.me.state(frames[-1].value["status"]) == "input_required"
    task_id = frames[0].value["id"]
    if cast.again.subscription_ends:
        (question,) = await cast.again.follow("subscribe", {"id": task_id})
        assert cast.again.state(question.value["status"]) == "input_required"
        *_, last = await cast.again.follow("subscribe", {"id": task_id}, **{"Last-Event-ID": "1"})
        assert (last.value["final"], cast.again.state(last.value["status"])) == (True, "input_required")
        return
    async with cast.again.stream("subscribe", {"id": task_id}) as others:
        assert (await anext(others)).kind == "task"
        await cast.me.send("two", task=task_id)
        states = [cast.me.state(frame.value["status"]) async for frame in others if frame.kind == "status"]
    assert states == ["submitted", "working", "completed"]


@chapter()
async def a_client_that_comes_back_after_its_question_was_answered_misses_nothing(cast: Cast) -> None:
    asked = await cast.me.follow("stream", cast.me.sending("one", agent="asks"))
    task_id = asked[0].value["id"]
    answered = await cast.me.send("two", task=task_id)
    for seen in (asked[0], asked[-1]):
        resumed = await cast.again.follow("subscribe", {"id": task_id}, **{"Last-Event-ID": str(seen.seq)})
        assert cast.again.state(resumed[-1].value["status"]) == "completed"
        assert folded(resumed)["text"] == text_of(answered)
        if cast.again.subscription_ends:
            assert [frame.seq for frame in resumed if frame.value.get("final")] == [resumed[-1].seq]


@chapter()
async def the_stream_of_a_follow_up_begins_where_it_was_said(cast: Cast) -> None:
    task = await cast.me.send("one", agent="asks")
    frames = await cast.me.follow("stream", cast.me.sending("two", task=task["id"]))
    assert cast.me.state(frames[0].value["status"]) == "submitted"
    assert folded(frames)["text"] == "one and two"


@chapter()
async def missing_credentials_leave_a_stream_open(cast: Cast) -> None:
    async with cast.me.stream("stream", cast.me.sending("one", agent="asks-credentials")) as frames:
        states = []
        async for frame in frames:
            states += [cast.me.state(frame.value["status"])] if frame.kind in {"status", "task"} else []
            if states[-1] == "auth_required":
                await cast.again.send("here", task=frame.value["taskId"], now=True)
    assert states == ["submitted", "working", "auth_required", "submitted", "working", "completed"]
