"""Messages: quick, waiting, not waiting, and several turns in one task."""

from tests.support.chapters.answers import text_of, working
from tests.support.story import Cast, chapter


@chapter()
async def a_quick_message_is_answered_with_a_completed_task(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="echo")
    cast.me.is_task(task)
    assert (cast.me.state(task["status"]), text_of(task)) == ("completed", "hello")
    if cast.me.wishes("get"):
        assert await cast.me.get(task["id"]) == task


@chapter()
async def a_waiting_message_is_answered_when_the_work_is_done(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="form-generator")
    assert (cast.me.state(task["status"]), text_of(task)) == ("completed", "hello")


@chapter()
async def a_message_that_does_not_wait_is_answered_at_once(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="gate", now=True)
    assert cast.me.state(task["status"]) in {"submitted", "working"}
    await working(cast.me, task["id"], "begin")
    done = await cast.me.send("stop", task=task["id"])
    assert (cast.me.state(done["status"]), text_of(done)) == ("completed", "begin end")


@chapter()
async def a_direct_reply_is_a_message_without_a_task(cast: Cast) -> None:
    kind, said = cast.me.sent(await cast.me.ask("send", cast.me.sending("hello", agent="replies")))
    assert (kind, said["parts"][0]["text"]) == ("message", "You said hello")
    assert said["contextId"]
    assert "taskId" not in said
    (frame,) = await cast.me.follow("stream", cast.me.sending("hello", agent="replies"))
    assert (frame.kind, frame.seq) == ("message", None)


@chapter()
async def a_history_is_as_long_as_it_was_asked_for(cast: Cast) -> None:
    task = await cast.me.send("one", agent="asks", history=0)
    assert "history" not in task or not cast.me.tells_zero
    await cast.me.send("two", task=task["id"])
    lengths = [len((await cast.me.get(task["id"], historyLength=length)).get("history", ())) for length in (0, 1, 2, 9)]
    assert lengths == [0, 1, 2, 3]
    whole = await cast.me.get(task["id"])
    assert [said["parts"][0]["text"] for said in whole["history"]] == ["one", "Which one?", "two"]


@chapter()
async def an_interview_takes_several_turns_in_one_task(cast: Cast) -> None:
    first = await cast.me.send("hello", agent="interview")
    assert cast.me.state(first["status"]) == "input_required"
    second = await cast.me.send("Ada", task=first["id"], context=first["contextId"])
    assert "Ada" in second["status"]["message"]["parts"][0]["text"]
    last = await cast.me.send("a loom", task=first["id"])
    assert (last["id"], cast.me.state(last["status"]), text_of(last)) == (
        first["id"],
        "completed",
        "Ada wishes: a loom",
    )
