"""The chapters of the story: free of languages and doors, each told to a cast. Speakers know the differences."""

import asyncio
import json
from base64 import b64decode
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple
from urllib.parse import urlsplit
from uuid import uuid4

import pytest

from tests.support.agents import GEO, TRACE
from tests.support.receiver import receiver
from tests.support.story import PATIENCE, Cast, Frame, Json, Refused, Speaker


class Chapter(NamedTuple):
    """A chapter, and the trait that speakers need for it."""

    tell: Callable[[Cast], Awaitable[None]]
    needs: str

    @property
    def name(self) -> str:
        return self.tell.__name__


CHAPTERS: list[Chapter] = []
Telling = Callable[[Cast], Awaitable[None]]


def chapter(needs: str = "") -> Callable[[Telling], Telling]:
    """Add the function to the chapters."""

    def add(tell: Telling) -> Telling:
        CHAPTERS.append(Chapter(tell, needs))
        return tell

    return add


def text_of(task: Json) -> str:
    return "".join(part.get("text", "") for found in task.get("artifacts", ()) for part in found["parts"])


def folded(frames: list[Frame]) -> Json:
    """The artifacts' text and the last status, as a client that folds keeps them."""
    first, *rest = frames
    assert first.kind == "task"
    texts = {
        found["artifactId"]: [part["text"] for part in found["parts"]] for found in first.value.get("artifacts", ())
    }
    status = first.value["status"]
    for frame in rest:
        if frame.kind == "status":
            status = frame.value["status"]
        elif frame.kind == "artifact":
            found = frame.value["artifact"]
            new = [part["text"] for part in found["parts"]]
            texts[found["artifactId"]] = texts.get(found["artifactId"], []) + new if frame.value.get("append") else new
    return {"text": "".join("".join(parts) for parts in texts.values()), "status": status}


async def refusal(asking: Any) -> Json:
    with pytest.raises(Refused) as told:
        await asking
    return told.value.error


def reason(speaker: Speaker, error: Json) -> str:
    """The reason in the details, which have the shape of the dialect."""
    if speaker.error_is_list:
        assert all(detail["@type"].startswith("type.googleapis.com/google.rpc.") for detail in error["data"])
        return str(error["data"][0]["reason"])
    assert isinstance(error.get("data", {}), dict)
    return str(error.get("data", {}).get("reason", ""))


async def working(speaker: Speaker, task_id: str, text: str) -> Json:
    """The task once it has said this."""
    async with asyncio.timeout(PATIENCE):
        while text not in text_of(task := await speaker.get(task_id)):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.02)
    return task


# ------------------------------------------------------------------ sending


@chapter()
async def a_quick_message_is_answered_with_a_completed_task(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="echo")
    cast.me.is_task(task)
    assert (cast.me.state(task["status"]), text_of(task)) == ("completed", "hello")
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


# ------------------------------------------------------------------ streams


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
async def a_last_event_that_is_no_number_is_as_good_as_none(cast: Cast) -> None:
    for garbage in ("abc", "-1", "1e3", "9" * 30, "0x1", "1.5"):
        frames = await cast.me.follow("stream", cast.me.sending("hello", agent="echo"), **{"Last-Event-ID": garbage})
        assert [frame.seq for frame in frames] == [1, 2, 3, 4]


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


# ---------------------------------------------------------- list and cancel


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


# -------------------------------------------------------------------- errors


@chapter()
async def a_foreign_task_and_a_missing_one_are_told_in_the_same_bytes(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="asks")
    missing = "0" * len(task["id"])
    for wish, params in [
        ("get", {"id": "?"}),
        ("cancel", {"id": "?"}),
        ("subscribe", {"id": "?"}),
        ("send", cast.me.sending("x", task="?")),
        ("stream", cast.me.sending("x", task="?")),
    ]:
        answers = []
        for task_id in (task["id"], missing):
            filled = (
                {**params, "id": task_id}
                if "id" in params
                else params | {"message": params["message"] | {"taskId": task_id}}
            )
            error = await refusal(cast.stranger.ask(wish, filled))
            assert (error["code"], error["message"]) == (-32001, "Task not found")
            assert reason(cast.me, error) == "TASK_NOT_FOUND"
            answers.append(str(error).replace(task_id, "?"))
        assert answers[0] == answers[1]
    assert await cast.me.get(task["id"]) == task


@chapter()
async def a_task_that_has_ended_takes_nothing_more(cast: Cast) -> None:
    task = await cast.me.send("hello", agent="echo")
    for wish in ("send", "stream"):
        error = await refusal(cast.me.ask(wish, cast.me.sending("more", task=task["id"])))
        assert (error["code"], reason(cast.me, error)) == (-32004, "UNSUPPORTED_OPERATION")
        assert "the task has ended: it is completed" in str(error)
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
    # With an envelope the method is another version's, without one the path is.
    other = -32601 if cast.me.has_envelope else -32009
    assert {codes[version] for version in ("1.0", "0.3", "0.2") if version not in spoken} == {other}


@chapter()
async def a_repeated_message_is_one_task_and_another_content_is_a_conflict(cast: Cast) -> None:
    first = await cast.me.send("hello", agent="form-coroutine", id=f"once-{uuid4()}")
    name = first["history"][0]["messageId"]
    assert await cast.again.send("hello", agent="form-coroutine", id=name) == first
    frames = await cast.again.follow("stream", cast.me.sending("hello", agent="form-coroutine", id=name))
    assert frames[0].value["id"] == first["id"]
    assert folded(frames)["text"] == "hello"
    error = await refusal(cast.me.ask("send", cast.me.sending("other", agent="form-coroutine", id=name)))
    assert (error["code"], reason(cast.me, error)) == (-32602, "IDEMPOTENCY_CONFLICT")
    assert (await cast.stranger.send("hello", agent="form-coroutine", id=name))["id"] != first["id"]


# ---------------------------------------- extensions, media types, tenants


@chapter("extensions")
async def extensions_are_asked_for_activated_and_told(cast: Cast) -> None:
    told, other = cast.me.extensions_headers

    async def headers_of(wire: Any, **headers: str) -> dict[str, str]:
        body = json.dumps(wire).encode()
        async with cast.me.door.ask("POST", cast.me.path, body, cast.me.headers(**headers)) as reply:
            assert [chunk async for chunk in reply.chunks]
            return reply.headers

    for wish in ("send", "stream"):
        wire = cast.me.call(wish, cast.me.sending("hello", agent="extended"))
        seen = await headers_of(wire, **{"A2A-Extensions": TRACE + ",urn:unknown", "X-A2A-Extensions": GEO})
        assert (seen[told], other in seen) == (f"{GEO}, {TRACE}", False)
        hostile = "urn:unknown,\t, " + "x" * 5_000 + ",%0d%0aX: y"
        for asked in ({}, {"A2A-Extensions": "urn:unknown"}, {"X-A2A-Extensions": hostile}):
            wire = cast.me.call(wish, cast.me.sending("hello", agent="extended"))
            seen = await headers_of(wire, **asked)
            assert not {told, other} & set(seen)
    members = [cast.me.call("send", cast.me.sending("hello", agent="extended")), cast.me.call("nope", {})]
    assert (await headers_of(members, **{"A2A-Extensions": GEO}))[told] == GEO
    refused = cast.me.sending("hello", agent="extended")
    refused["configuration"][cast.me.webhook_name] = cast.me.webhook("http://10.0.0.1/")
    assert (await headers_of(cast.me.call("send", refused), **{"A2A-Extensions": GEO}))[told] == GEO


@chapter("extensions")
async def a_required_extension_is_demanded_with_the_code_of_the_version(cast: Cast) -> None:
    for wish in ("send", "stream"):
        error = await refusal(cast.me.ask(wish, cast.me.sending("hello", agent="demanding")))
        assert error["code"] == cast.me.extension_code
        assert reason(cast.me, error) == "EXTENSION_SUPPORT_REQUIRED"
        assert GEO in str(error["data"])
    for header in (",".join(f"urn:x:{number}" for number in range(101)), "x" * 9_000):
        wire = cast.me.call("send", cast.me.sending("hello", agent="bench"))
        _, answer = await cast.me.post(wire, **{"A2A-Extensions": header})
        assert answer["error"]["code"] == -32600
        assert "A2A-Extensions may" in str(answer["error"])
    result = await cast.me.ask("send", cast.me.sending("hello", agent="demanding"), **{"X-A2A-Extensions": GEO})
    assert cast.me.sent(result)[1]["status"]["message"]["extensions"] == [GEO]


@chapter()
async def media_types_that_do_not_fit_are_refused_both_ways(cast: Cast) -> None:
    wish = cast.me.sending("hello", agent="pictures")
    wish["configuration"]["acceptedOutputModes"] = ["text/plain", "image/*"]
    for sending in (wish, cast.me.sending("hello", agent="pictures") | {"message": cast.me.attaching(b"a", "a/b")}):
        for kind in ("send", "stream"):
            error = await refusal(cast.me.ask(kind, sending))
            assert (error["code"], reason(cast.me, error)) == (-32005, "CONTENT_TYPE_NOT_SUPPORTED")
            assert error["message"] == "Incompatible content types: content type not supported"
            parts = "content" if "content" in sending["message"] else "parts"
            assert "text/csv" in str(error["data"]) or f"message.{parts}[0]" in str(error["data"])
    wish["configuration"]["acceptedOutputModes"] = ["text/*;q=0.5"]
    assert text_of(cast.me.sent(await cast.me.ask("send", wish))[1]) == "1 parts for text/*;q=0.5"


@chapter("tenants")
async def another_tenant_is_as_unknown_as_another_task(cast: Cast) -> None:
    task = await cast.me.send("one", agent="asks")
    params = {"id": task["id"], "taskId": task["id"], "url": "https://example.org"} | cast.me.sending("two")
    for method in cast.me.names.values():
        for tenant in ("nowhere", "\u202e", "x" * 9_000):
            error = await refusal(cast.me.ask(method, params | {"tenant": tenant}))
            assert (error["code"], error["message"], tenant in str(error)) == (-32001, "Task not found", False), method
        for other in (5, ["a"], {"a": 1}, True):
            error = await refusal(cast.me.ask(method, params | {"tenant": other}))
            assert (error["code"], "tenant" in str(error["data"])) == (-32602, True), method
    assert await cast.me.get(task["id"]) == await cast.me.get(task["id"], tenant="") == task


# --------------------------------------------------------------------- files


_PROTO = {"fileWithUri": "uri", "fileWithBytes": "bytes"}


def files_of(wire: Any) -> list[Json]:
    """Every link or bytes of a file in an answer: url or uri, bytes, name, type."""
    if isinstance(wire, list):
        return [found for item in wire for found in files_of(item)]
    if not isinstance(wire, dict):
        return []
    if "file" in wire and isinstance(wire["file"], dict):
        file = {_PROTO.get(name, name): value for name, value in wire["file"].items()}
        names = {"url": "uri", "raw": "bytes", "name": "name", "type": "mimeType"}
        return [{name: file.get(member) for name, member in names.items()}]
    if "kind" not in wire and ("url" in wire or "raw" in wire):
        names = {"url": "url", "raw": "raw", "name": "filename", "type": "mediaType"}
        return [{name: wire.get(member) for name, member in names.items()}]
    return files_of(list(wire.values()))


async def downloaded(cast: Cast, url: str) -> bytes:
    """What is behind a link, for somebody without a key."""
    place = urlsplit(url)
    assert place.scheme == "http"
    async with cast.me.door.ask("GET", f"{place.path}?{place.query}", b"", {}) as reply:
        assert reply.status == 200
        return b"".join([chunk async for chunk in reply.chunks])


@chapter()
async def a_small_file_comes_back_inline_and_a_large_one_as_a_link(cast: Cast) -> None:
    small, large = b"\0small\xff", bytes(range(256)) * 300
    for content, name in ((small, "a.png"), (large, "b.png")):
        wish = cast.me.sending("", agent="echo") | {"message": cast.me.attaching(content, "image/png", name)}
        task = cast.me.sent(await cast.me.ask("send", wish))[1]
        found = files_of([task["artifacts"], task["history"]])
        assert [(file["name"], file["type"]) for file in found] == [(name, "image/png")] * 2
        if content is small:
            assert [b64decode(file["raw"]) for file in found] == [small] * 2
            continue
        assert [file["raw"] for file in found] == [None] * 2
        assert await downloaded(cast, found[0]["url"]) == large
        repeated = cast.me.sent(await cast.me.ask("send", wish))[1]
        assert repeated["id"] == task["id"]
        listed = await cast.me.ask("list", cast.me.listing(context=task["contextId"], artifacts=True))
        assert await downloaded(cast, files_of(listed)[0]["url"]) == large
        again = files_of((await cast.me.get(task["id"]))["artifacts"])
        assert again[0]["url"].partition("?")[0] == found[0]["url"].partition("?")[0]


@chapter()
async def a_stream_links_to_the_files_that_an_agent_makes(cast: Cast) -> None:
    wish = cast.me.sending("", agent="files")
    attached = cast.me.attaching(b"x" * 50_000, "text/plain", "x.txt")
    parts = "parts" if "parts" in attached else "content"
    wish["message"] = attached | {parts: [*attached[parts], cast.me.data({"sizes": [100, 70_000]})]}
    frames = await cast.me.follow("stream", wish)
    made = [files_of(frame.value["artifact"])[0] for frame in frames if frame.kind == "artifact"]
    assert b64decode(made[0]["raw"]) == bytes(100)
    assert await downloaded(cast, made[1]["url"]) == bytes(70_000)
    assert files_of(frames[0].wire)[0]["raw"] is None
    said = [frame.value["status"].get("message") for frame in frames if frame.kind == "status"]
    assert any(message and "x.txt: 50000 bytes" in message["parts"][0]["text"] for message in said)


@chapter()
async def nobody_can_name_a_file_of_the_server(cast: Cast) -> None:
    reference = "taskdesk-file:20260101-" + "0" * 32 + "/x"
    wish = cast.me.sending("", agent="echo")
    parts = "parts" if "parts" in wish["message"] else "content"
    wish["message"][parts] = [cast.me.link(reference)]
    error = await refusal(cast.me.ask("send", wish))
    assert error["code"] == -32602
    assert f"message.{parts}[0]" in str(error["data"])
    said = f'{reference} "url":"{reference}"'
    assert text_of(await cast.me.send(said, agent="echo")) == said


# ----------------------------------------------------------------- webhooks


def scheme_of(config: Json) -> Json:
    """Of the authentication, in one word for both shapes."""
    shown = config["authentication"]
    assert "credentials" not in shown
    return shown.get("scheme") or shown["schemes"][0]


@chapter()
async def a_webhook_is_registered_read_listed_and_removed(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    url = "http://127.0.0.1:65001/hook?a=b"
    wish = cast.me.webhook_of(task, url, id="mine", token="tok", credentials="secret")
    ((of, written),) = cast.me.webhooks(await cast.me.ask("push", wish))
    assert (of, written["id"], written["url"], written["token"]) == (task, "mine", url, "tok")
    assert scheme_of(written) == "Bearer"
    read = cast.me.webhooks(await cast.me.ask("pushed", cast.me.webhook_id(task, "mine")))
    assert read == cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))
    ((_, shown),) = read
    assert "token" not in shown
    assert (shown["id"], shown["url"], scheme_of(shown)) == ("mine", url, "Bearer")
    # A name that nobody knows now may be known later. The same id again replaces it; another one stands beside it.
    await cast.me.ask("push", cast.me.webhook_of(task, "https://nobody.invalid/", id="mine"))
    await cast.me.ask("push", cast.me.webhook_of(task, url + "&c=d", id="mine"))
    await cast.me.ask("push", cast.me.webhook_of(task, url))
    both = [config for _, config in cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))]
    assert [config["url"] for config in both] == [url + "&c=d", url]
    assert (both[1]["id"] == task) is cast.me.default_webhook
    default = cast.me.ask("pushed", cast.me.webhook_id(task, "default"))
    if cast.me.default_webhook:
        assert [config for _, config in cast.me.webhooks(await default)] == both[1:]
    else:
        assert (await refusal(default))["code"] == -32001
    second = "default" if cast.me.default_webhook else both[1]["id"]
    for name in ("mine", second, "mine"):
        assert await cast.me.ask("unpush", cast.me.webhook_id(task, name)) == cast.me.nothing
    assert cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task))) == []
    assert (await refusal(cast.me.ask("pushed", cast.me.webhook_id(task, "mine"))))["code"] == -32001


@chapter()
async def the_webhooks_of_others_are_told_in_the_bytes_of_a_missing_task(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    await cast.me.ask("push", cast.me.webhook_of(task, "http://127.0.0.1:65001/", id="mine"))
    for wish, params in {
        "push": lambda id: cast.me.webhook_of(id, "http://127.0.0.1:65001/", id="mine"),
        "pushed": lambda id: cast.me.webhook_id(id, "mine"),
        "pushes": cast.me.webhook_id,
        "unpush": lambda id: cast.me.webhook_id(id, "mine"),
    }.items():
        foreign = await refusal(cast.stranger.ask(wish, params(task)))
        missing = await refusal(cast.stranger.ask(wish, params("0" * len(task))))
        assert str(foreign).replace(task, "0" * len(task)) == str(missing)
        assert foreign["code"] == -32001
    assert cast.me.webhooks(await cast.me.ask("pushes", cast.me.webhook_id(task)))


@chapter()
async def a_webhook_that_may_not_be_is_refused_with_its_field(cast: Cast) -> None:
    task = (await cast.me.send("one", agent="asks"))["id"]
    path, inline = cast.me.webhook_path, f"configuration.{cast.me.webhook_name}."
    for wrong, field in {
        "ftp://127.0.0.1/": "url",
        "http://10.0.0.1/": "url",
        "https://169.254.169.254/latest": "url",
        "https://user@example.org/": "url",
        "hook": "url",
        "http://127.0.0.1:22/": "url",
    }.items():
        error = await refusal(cast.me.ask("push", cast.me.webhook_of(task, wrong)))
        assert (error["code"], f"'{path}{field}'" in str(error["data"])) == (-32602, True), (wrong, error)
    for more, field in (({"token": "a\r\nb: c"}, "token"), ({"id": "i" * 256}, "id"), ({"token": 1}, "token")):
        error = await refusal(cast.me.ask("push", cast.me.webhook_of(task, "http://127.0.0.1:65001/", **more)))
        assert (error["code"], f"'{path}{field}'" in str(error["data"])) == (-32602, True), error
    params = cast.me.sending("hello", agent="echo")
    params["configuration"][cast.me.webhook_name] = cast.me.webhook("http://10.0.0.1/")
    error = await refusal(cast.me.ask("send", params))
    assert (error["code"], f"'{inline}url'" in str(error["data"])) == (-32602, True)


@chapter()
async def a_webhook_that_comes_after_the_end_hears_of_the_end_once(cast: Cast) -> None:
    done = (await cast.me.send("hello", agent="echo"))["id"]
    with receiver() as there:
        for number in range(2):
            await cast.me.ask("push", cast.me.webhook_of(done, f"{there.url}/hook", id="mine", token=f"tok-{number}"))
            await cast.me.ask("push", cast.me.webhook_of(done, f"{there.url}/other", id=f"other-{number}"))
        async with asyncio.timeout(PATIENCE):
            while len(there.got) < 3:  # noqa: ASYNC110  # another thread
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.2)
    assert sorted(got.path for got in there.got) == ["/hook", "/other", "/other"]
    assert all(cast.me.completed_mark in got.raw.decode() and done in got.raw.decode() for got in there.got)


@chapter()
async def a_webhook_that_comes_with_a_message_gets_the_whole_story(cast: Cast) -> None:
    with receiver() as there:
        params = cast.me.sending("one", agent="asks")
        params["configuration"][cast.me.webhook_name] = cast.me.webhook(
            f"{there.url}/hook", token="tok", credentials="secret"
        )
        _, task = cast.me.sent(await cast.me.ask("send", params))
        done = await cast.me.send("two", task=task["id"])
        assert cast.me.state(done["status"]) == "completed"
        async with asyncio.timeout(PATIENCE):
            while not (there.got and cast.me.completed_mark in there.got[-1].raw.decode()):  # noqa: ASYNC110  # another thread
                await asyncio.sleep(0.02)
    seqs = [got.seq for got in there.got]
    assert seqs == sorted(set(seqs))
    assert seqs[0] == 1
    for got in there.got:
        assert got.headers["authorization"] == "Bearer secret"
        assert got.headers["x-a2a-notification-token"] == got.headers["a2a-notification-token"] == "tok"
        assert got.headers.get("a2a-version", "") == cast.me.webhook_version
        assert cast.me.delivered(got.headers["content-type"], got.json) == task["id"]
    if cast.me.deliveries_are_answers:
        assert there.got[-1].json == done


# ------------------------------------------------------ batch, notification


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
    assert cast.me.page(await cast.me.ask("list", cast.me.listing(context=context)))[2] == 1
    assert await cast.me.post({"jsonrpc": "2.0", "method": "nope"}) == (204, None)


@chapter()
async def without_a_key_there_is_a_challenge(cast: Cast) -> None:
    wire = cast.me.call("get", {"id": "t"})
    status, answer = await cast.me.post(wire, Authorization="Bearer nobody")
    assert (status, answer["id"], answer["error"]["code"]) == (401, wire["id"], -38009)
