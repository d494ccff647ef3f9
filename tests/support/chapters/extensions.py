"""Extensions, media types and tenants."""

import json
from typing import Any

from tests.support.agents import GEO, TRACE
from tests.support.chapters.answers import reason, refusal, text_of
from tests.support.story import Cast, chapter


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
            assert "the agent returns " in str(error) or "the agent accepts " in str(error)
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
