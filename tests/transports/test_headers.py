"""The headers of answers: which version answered, what is wrong with a key, and large answers compressed."""

import gzip
import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.conftest import NO_TLS, Server
from tests.transports.calls import call

pytestmark = pytest.mark.storage

STREAMS = {
    "1.0": ("/jsonrpc", "SendStreamingMessage"),
    "0.3": ("/jsonrpc", "message/stream"),
    "1.0 over REST": ("/message:stream", None),
    "0.3 over REST": ("/v1/message:stream", None),
}
VERSIONS = {"1.0": "1.0", "0.3": "0.3", "1.0 over REST": "1.0", "0.3 over REST": "0.3"}


def sending(text: str, old: bool, **more: Any) -> dict[str, Any]:
    """Return the params of a send to the agent that answers with the same text."""
    role, part = ("user", {"kind": "text", "text": text}) if old else ("ROLE_USER", {"text": text})
    message = {"messageId": str(uuid4()), "role": role, "parts": [part]}
    return {"message": message, "metadata": {"agent": "echo"}} | more


def body(method: str | None, params: dict[str, Any]) -> bytes:
    return json.dumps(params).encode() if method is None else call(method, params)


def texts(value: Any) -> Iterator[str]:
    """Give every text of every part."""
    if isinstance(value, dict):
        yield from (text for name, text in value.items() if name == "text")
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for child in inner:
        yield from texts(child)


@pytest.mark.parametrize("dialect", STREAMS)
def test_a_reader_that_ends_lines_by_unicode_sees_whole_frames(caller: httpx.Client, dialect: str) -> None:
    path, method = STREAMS[dialect]
    text = "a\u2028b\u2029c\u0085d"
    wish = body(method, sending(text, dialect.startswith("0.3")))
    with caller.stream("POST", path, content=wish) as response:
        assert response.headers["a2a-version"] == VERSIONS[dialect]
        lines = list(response.iter_lines())
    frames = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert text in set(texts(frames))
    assert all(line.startswith(("data: ", "id: ", "retry: ", ":")) or not line for line in lines)


# ------------------------------------------------------------------- the version


@pytest.mark.parametrize(
    ("method", "version", "answers"),
    [
        ("GetTask", None, "1.0"),
        ("tasks/get", None, "0.3"),
        ("tasks/get", "0.2", "0.2"),
        ("tasks/get", "1.0", "1.0"),
        ("GetTask", "0.3", "0.3"),
        ("GetTask", "9.9", "1.0"),
        ("nothing", None, None),
    ],
)
def test_an_answer_says_which_version_it_is_in(
    caller: httpx.Client, method: str, version: str | None, answers: str | None
) -> None:
    headers = {"A2A-Version": version} if version else {}
    answer = caller.post("/jsonrpc", content=call(method, {"id": "t"}), headers=headers)
    assert (answer.status_code, answer.headers.get("a2a-version")) == (200, answers)


@pytest.mark.parametrize(
    ("path", "asked", "answers"),
    [
        ("/tasks/t", None, "1.0"),
        ("/v1/tasks/t", None, "0.3"),
        ("/v1/tasks/t", "0.2", "0.2"),
        ("/tasks", None, "1.0"),
        ("/.well-known/agent-card.json", "1.0", "1.0"),
        ("/.well-known/agent-card.json", "0.3", "0.3"),
        ("/.well-known/agent-card.json", None, "1.0, 0.3"),
        ("/.well-known/agent.json", None, "0.2"),
        ("/agent/authenticatedExtendedCard", None, "0.2"),
    ],
)
def test_every_path_says_which_version_it_answers_in(
    caller: httpx.Client, path: str, asked: str | None, answers: str
) -> None:
    answer = caller.get(path, headers={"A2A-Version": asked} if asked else {})
    assert answer.headers["a2a-version"] == answers


def test_notifications_and_batches_say_it_too(caller: httpx.Client) -> None:
    silent = caller.post("/jsonrpc", content=call("tasks/get", {"id": "t"}, id=...))
    assert (silent.status_code, silent.headers["a2a-version"]) == (204, "0.3")
    both = b"[" + call("GetTask", {"id": "t"}) + b"," + call("tasks/get", {"id": "t"}) + b"]"
    assert caller.post("/jsonrpc", content=both).headers["a2a-version"] == "1.0, 0.3"


def test_an_answer_without_a_body_has_no_media_type(caller: httpx.Client) -> None:
    silent = call("tasks/get", {"id": "t"}, id=...)
    for content in (silent, b"[" + silent + b"]"):
        answer = caller.post("/jsonrpc", content=content)
        assert answer.status_code == 204
        assert {"content-type", "content-security-policy"}.isdisjoint(answer.headers)


@pytest.mark.parametrize("name", ["A2A-Version", "a2a-version", "A2A-VERSION"])
def test_the_version_in_the_query_is_known_in_any_case(caller: httpx.Client, name: str) -> None:
    answer = caller.post("/jsonrpc", content=call("GetTask", {"id": "t"}), params={name: "2.0"})
    assert answer.json()["error"]["code"] == -32009
    assert caller.get("/tasks/t", params={name: "0.3"}).json()["error"]["details"][0]["reason"] == (
        "VERSION_NOT_SUPPORTED"
    )


# ----------------------------------------------------------------------- the key


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Basic eDp5"}, {"Authorization": "Bearer"}], ids=str)
@pytest.mark.parametrize("path", ["/jsonrpc", "/message:send"])
def test_a_challenge_to_a_call_without_a_key_names_no_error(server: Server, headers: dict[str, str], path: str) -> None:
    answer = httpx.post(server.url + path, content=call("GetTask", {"id": "t"}), headers=headers | JSON, verify=NO_TLS)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, 'Bearer realm="taskdesk"')
    assert "send an API key" in answer.text


@pytest.mark.parametrize(
    "headers", [{"Authorization": "Bearer nobody"}, {"X-API-Key": "nobody"}, {"X-API-Key": "x" * 600}], ids=str
)
@pytest.mark.parametrize("path", ["/jsonrpc", "/message:send"])
@pytest.mark.parametrize("padding", [0, 200_000], ids=["small", "large"])
def test_a_challenge_to_a_wrong_key_says_that_it_is_invalid(
    server: Server, headers: dict[str, str], path: str, padding: int
) -> None:
    content = call("GetTask", {"id": "t", "x": "x" * padding})
    answer = httpx.post(server.url + path, content=content, headers=headers | JSON, verify=NO_TLS)
    challenge = 'Bearer realm="taskdesk", error="invalid_token"'
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, challenge)
    assert "unknown, revoked, expired or not valid here" in answer.text


JSON = {"Content-Type": "application/json"}


# ---------------------------------------------------------------------- the path


@pytest.mark.parametrize("path", ["/task", "/agents/echo/nowhere", "/admin/nowhere", "/static/nowhere", "/task?x=1"])
def test_a_path_with_nothing_at_it_is_json_for_programs_and_a_page_for_browsers(
    caller: httpx.Client, path: str
) -> None:
    for accept in ("*/*", "application/json"):
        answer = caller.get(path, headers={"Accept": accept}, follow_redirects=False)
        if answer.status_code == 302:
            # The admin asks for a login first.
            assert path.startswith("/admin")
            continue
        assert (answer.status_code, answer.headers["content-type"]) == (404, "application/json")
        assert answer.json()["error"]["details"][0]["reason"] == "METHOD_NOT_FOUND"
    page = caller.get("/task", headers={"Accept": "text/html,application/xhtml+xml"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")


# --------------------------------------------------------------------- the bytes


@pytest.fixture
def large(caller: httpx.Client) -> str:
    """Return the id of a task whose answer is large."""
    answer = caller.post("/jsonrpc", content=call("SendMessage", sending("words and words " * 1_000, old=False)))
    return str(answer.json()["result"]["task"]["id"])


def asked_for(large: str) -> dict[str, httpx.Request]:
    one, two = (call("GetTask", {"id": large}, id=number) for number in (1, 2))
    return {
        "a call": httpx.Request("POST", "/jsonrpc", content=one),
        "a batch": httpx.Request("POST", "/jsonrpc", content=b"[" + one + b"," + two + b"]"),
        "REST": httpx.Request("GET", f"/tasks/{large}"),
        "REST of 0.x": httpx.Request("GET", f"/v1/tasks/{large}"),
    }


@pytest.mark.parametrize("way", ["a call", "a batch", "REST", "REST of 0.x"])
def test_a_large_answer_is_compressed_for_who_takes_it(caller: httpx.Client, large: str, way: str) -> None:
    def ask(accept: str) -> httpx.Response:
        request = asked_for(large)[way]
        return caller.request(
            request.method, str(request.url), content=request.content, headers={"Accept-Encoding": accept}
        )

    plain = ask("identity")
    assert "content-encoding" not in plain.headers
    assert plain.headers["vary"] == "Accept-Encoding"
    for accept in ("gzip", "deflate, GZIP;q=0.5, br", "x-gzip"):
        small = ask(accept)
        assert (small.headers["content-encoding"], small.headers["vary"]) == ("gzip", "Accept-Encoding")
        assert int(small.headers["content-length"]) < len(plain.content) / 5
        assert small.content == plain.content
        assert small.headers["content-type"] == plain.headers["content-type"]
    for accept in ("gzip;q=0", "br", "*;q=0", "gzip; q=0.0, identity"):
        assert "content-encoding" not in ask(accept).headers


def test_small_answers_streams_and_cards_are_never_compressed(caller: httpx.Client, large: str) -> None:
    def encoding(method: str, path: str, content: bytes = b"") -> str | None:
        with caller.stream(method, path, content=content, headers={"Accept-Encoding": "gzip"}) as response:
            assert response.status_code == 200
            response.read()
            return response.headers.get("content-encoding")

    assert encoding("POST", "/jsonrpc", call("GetTask", {"id": "t"})) is None
    assert encoding("POST", "/jsonrpc", call("tasks/resubscribe", {"id": large})) is None
    words = sending("words and words " * 1_000, old=False)
    assert encoding("POST", "/jsonrpc", call("SendStreamingMessage", words)) is None
    assert encoding("GET", "/.well-known/agent-card.json") is None


def test_a_compressed_answer_is_gzip_on_the_wire(caller: httpx.Client, large: str) -> None:
    with caller.stream("GET", f"/tasks/{large}", headers={"Accept-Encoding": "gzip"}) as response:
        raw = b"".join(response.iter_raw())
    assert len(raw) == int(response.headers["content-length"])
    assert json.loads(gzip.decompress(raw))["id"] == large
