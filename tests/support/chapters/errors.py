"""Errors: tasks of others, tasks that have ended, versions and keys."""

from uuid import uuid4

from tests.support.chapters.answers import folded, reason, refusal
from tests.support.story import Cast, chapter


@chapter()
async def a_foreign_task_and_a_missing_one_are_told_in_the_same_bytes(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="asks")
    missing = "0" * len(task["id"])
    for wish in cast.me.wishes("get", "cancel", "subscribe", "send", "stream"):
        answers = []
        name = f"the-same-{uuid4()}"
        for task_id in (task["id"], missing):
            params = {"id": task_id} if wish not in {"send", "stream"} else cast.me.sending("x", task=task_id, id=name)
            error = await refusal(cast.stranger.ask(wish, params))
            assert (error["code"], error["message"]) == (-32001, "Task not found")
            assert reason(cast.me, error) == "TASK_NOT_FOUND"
            answers.append(str(error).replace(task_id, "?"))
        assert answers[0] == answers[1]
    assert await cast.me.get(task["id"]) == task


@chapter()
async def a_task_that_has_ended_takes_nothing_more(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="echo")
    for wish in cast.me.wishes("send", "stream"):
        error = await refusal(cast.me.ask(wish, cast.me.sending("more", task=task["id"])))
        assert (error["code"], reason(cast.me, error)) == (-32004, cast.me.reason_of_ended)
        assert "the task has ended: it is completed" in str(error)
    if not cast.me.wishes("subscribe"):
        return
    if cast.me.subscription_ends:
        (frame,) = await cast.me.follow("subscribe", {"id": task["id"]})
        assert (frame.kind, frame.value) == ("task", task)
    else:
        assert (await refusal(cast.me.ask("subscribe", {"id": task["id"]})))["code"] == -32004


@chapter()
async def a_wrong_context_for_a_task_is_refused_with_the_field(cast: Cast) -> None:
    task = await cast.me.send("one", agent="asks")
    error = await refusal(cast.me.ask("send", cast.me.sending("two", task=task["id"], context="another")))
    assert error["code"] == -32602
    assert "message.contextId" in str(error["data"])


@chapter()
async def what_is_not_offered_is_refused_with_its_code(cast: Cast) -> None:
    assert (await refusal(cast.me.ask("nope", {})))["code"] == -32601


@chapter("card")
async def the_card_for_callers_who_are_known_is_theirs_by_scope_and_version(cast: Cast) -> None:
    if not cast.me.has_card:
        assert (await refusal(cast.me.ask("card", {})))["code"] == -32601
        return
    card = await cast.me.ask("card", {})
    assert {"echo", "scoped", "backstage"} <= {skill["id"] for skill in card["skills"]}
    cast.me.is_card(card)
    assert (await cast.me.ask("card", {"tenant": ""}))["skills"] == card["skills"]
    if cast.me.has_envelope:
        assert (await refusal(cast.me.ask("card", [])))["code"] == -32602


@chapter("versions")
async def versions_are_held_to(cast: Cast) -> None:
    wire = cast.me.call("get", {"id": "t"})
    codes = {}
    for version in ("1.0", "1.0.1", "0.3", "0.3.0", "0.2", "0.2.9", "2.0", "0.5", "x", ""):
        _, answer = await cast.me.post(wire, **{"A2A-Version": version})
        codes[version] = answer["error"]["code"]
    spoken = {version for version, code in codes.items() if code == -32001}
    assert spoken == cast.me.versions
    assert {codes["2.0"], codes["0.5"], codes["x"]} == {-32009}
    # The method belongs to another version, or the path does.
    others = {codes[version] for version in ("1.0", "0.3", "0.2") if version not in spoken}
    assert others == {cast.me.other_version_code}


@chapter()
async def a_repeated_message_is_one_task_and_another_content_is_a_conflict(cast: Cast) -> None:
    name = f"once-{uuid4()}"
    first = await cast.me.send("hello", agent="form-coroutine", id=name)
    assert await cast.again.send("hello", agent="form-coroutine", id=name) == first
    if cast.me.wishes("stream"):
        frames = await cast.again.follow("stream", cast.me.sending("hello", agent="form-coroutine", id=name))
        assert frames[0].value["id"] == first["id"]
        assert folded(frames)["text"] == "hello"
    error = await refusal(cast.me.ask("send", cast.me.sending("other", agent="form-coroutine", id=name)))
    assert (error["code"], reason(cast.me, error)) == (-32602, "IDEMPOTENCY_CONFLICT")
    assert (await cast.stranger.send("hello", agent="form-coroutine", id=name))["id"] != first["id"]


@chapter()
async def without_a_key_there_is_a_challenge(cast: Cast) -> None:
    wire = cast.me.call("send", cast.me.sending("hello"))
    status, answer = await cast.me.post(wire, Authorization="Bearer nobody")
    assert (status, answer["id"], answer["error"]["code"]) == (401, wire["id"], -38009)
