"""Tasks: listed page by page, and canceled."""

from tests.support.chapters.answers import reason, refusal, text_of, working
from tests.support.story import Cast, chapter


@chapter()
async def lists_go_page_by_page_through_the_callers_own(cast: Cast) -> None:
    context = (await cast.me.send("0", agent="echo"))["contextId"] + "-list"
    ids = [(await cast.me.send(str(n), agent="echo", context=context))["id"] for n in range(3)]
    found, token = [], ""
    while True:
        more = {"token": token} if token else {}
        wish = cast.me.listing(context=context, size=2, **more)
        tasks, token, total = cast.me.page(await cast.me.ask("list", wish))
        for task in tasks:
            cast.me.is_task(task)
            assert "artifacts" not in task
        found += [task["id"] for task in tasks]
        assert total == 3
        if not token:
            break
    assert sorted(found) == sorted(ids)
    assert len(found) == 3
    whole, _, _ = cast.me.page(await cast.me.ask("list", cast.me.listing(context=context, artifacts=True)))
    assert sorted(text_of(task) for task in whole) == ["0", "1", "2"]
    assert cast.me.page(await cast.stranger.ask("list", cast.me.listing(context=context))) == ([], "", 0)
    first = await cast.me.ask("list", cast.me.listing(context=context, size=1))
    wrong = cast.me.listing(context=context + "x", size=1, token=cast.me.page(first)[1])
    assert (await refusal(cast.me.ask("list", wrong)))["code"] == -32602


@chapter()
async def a_task_at_work_is_canceled_once(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="waits", now=True)
    await working(cast.me, task["id"], "working")
    async with cast.again.stream("subscribe", {"id": task["id"]}) as frames:
        await anext(frames)
        canceled = await cast.me.ask("cancel", {"id": task["id"]})
        cast.me.is_task(canceled)
        assert cast.me.state(canceled["status"]) == "canceled"
        assert [cast.me.state(frame.value["status"]) async for frame in frames if frame.kind == "status"] == [
            "canceled"
        ]
    error = await refusal(cast.me.ask("cancel", {"id": task["id"]}))
    assert (error["code"], error["message"]) == (-32002, "Task cannot be canceled")
    if cast.me.always_has_reason:
        assert reason(cast.me, error) == "TASK_NOT_CANCELABLE"
