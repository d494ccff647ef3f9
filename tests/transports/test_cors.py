"""Pages of other origins: preflights, the headers of every answer, and what a cache may do with it."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
import pytest
from django.core.exceptions import ImproperlyConfigured

import tasks_app
from config.environment import origins
from tasks_app.asgi import cors
from tasks_app.asgi.application import Http
from tasks_app.asgi.cors import Cors
from tasks_app.asgi.handler import LeanHandler
from tests.conftest import NO_TLS, PATIENCE, Person, Server
from tests.transports.calls import call, send

pytestmark = pytest.mark.storage

PAGE, OTHER = "https://page.example", "https://other.example"
LISTED = [PAGE, "http://localhost:3000"]
CARD = "/.well-known/agent-card.json"
CACHED = [CARD, "/.well-known/agent.json", "/agents/echo" + CARD, "/agents/", "/.well-known/jwks.json"]
PATHS = ["/jsonrpc", "/", "/agents/echo/jsonrpc", "/message:send", "/tasks/x", "/v1/tasks/x:subscribe", "/ws/ticket"]
PATHS += ["/home/tasks", "/agent/authenticatedExtendedCard", "/files/x/y", *CACHED]
JSON = {"Content-Type": "application/json"}
ASKS = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
Asked = Callable[..., httpx.Response]


def run(work: Coroutine[Any, Any, httpx.Response]) -> httpx.Response:
    return asyncio.run(work)


async def asked(listed: list[str], method: str, path: str, **more: Any) -> httpx.Response:
    return await asked_of(Cors(LeanHandler(), listed), method, path, **more)


async def asked_of(app: Any, method: str, path: str, **more: Any) -> httpx.Response:
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://testserver", verify=NO_TLS) as client:
        return await client.request(method, path, **more)


def preflight(listed: list[str], path: str, origin: str = PAGE, **asks: str) -> httpx.Response:
    return run(asked(listed, "OPTIONS", path, headers={"Origin": origin} | (asks or ASKS)))


def words(response: httpx.Response, name: str) -> set[str]:
    return {word.strip().lower() for word in response.headers[name].split(",")}


def cors_headers(response: httpx.Response) -> set[str]:
    return {name for name in response.headers if name.startswith("access-control-")}


# -------------------------------------------------------------------- preflights


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.requirement("SPARC-11")
def test_a_preflight_of_a_listed_origin_is_answered_without_a_key(path: str) -> None:
    answer = preflight(LISTED, path)
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["vary"] == "Origin"
    assert {"authorization", "a2a-version", "last-event-id"} < words(answer, "access-control-allow-headers")
    assert {"get", "post", "delete"} < words(answer, "access-control-allow-methods")
    assert int(answer.headers["access-control-max-age"]) == cors.MAX_AGE
    assert "access-control-allow-credentials" not in answer.headers


LOOKALIKES = [
    "null",
    "",
    "*",
    "http://page.example",
    "https://page.example:8443",
    "https://page.example.evil.example",
    "https://evil-page.example",
    "https://sub.page.example",
    "https://page.example/",
    "HTTPS://PAGE.EXAMPLE",
    "https://page.example,https://evil.example",
    "http://localhost",
    "http://localhost:30000",
]


@pytest.mark.parametrize("origin", LOOKALIKES)
@pytest.mark.parametrize("method", ["OPTIONS", "GET"])
def test_an_origin_that_only_looks_like_a_listed_one_gets_nothing(origin: str, method: str) -> None:
    answer = run(asked(LISTED, method, CARD, headers={"Origin": origin} | ASKS))
    assert cors_headers(answer) == set()
    assert "Origin" in answer.headers["vary"]
    if method == "OPTIONS":
        assert (answer.status_code, "A2A_CORS_ORIGINS" in answer.text) == (403, True)


@pytest.mark.parametrize("path", PATHS)
def test_without_a_list_no_page_of_another_origin_may_call(server: Server, path: str) -> None:
    answer = httpx.options(server.url + path, headers={"Origin": PAGE} | ASKS, verify=NO_TLS)
    assert (answer.status_code, "A2A_CORS_ORIGINS" in answer.text) == (403, True)
    answer = httpx.get(server.url + path, headers={"Origin": PAGE}, verify=NO_TLS)
    assert cors_headers(answer) == set()
    assert "origin" not in answer.headers.get("vary", "").lower()


def test_an_options_that_is_no_preflight_is_a_call_like_others() -> None:
    for headers in ({"Origin": PAGE}, ASKS, {}):
        assert run(asked(LISTED, "OPTIONS", "/jsonrpc", headers=headers)).status_code == 405
    assert run(asked(LISTED, "OPTIONS", "/jsonrpc", headers={"Origin": PAGE} | ASKS, content=b"x")).status_code == 405


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/admin/login/", "/static/desk/front.js", "/nothing/here"])
@pytest.mark.parametrize("method", ["GET", "OPTIONS"])
def test_pages_of_people_and_of_operators_are_for_their_own_origin(path: str, method: str) -> None:
    for listed in (LISTED, ["*"]):
        app = Http(Cors(plain, listed), plain)
        answer = run(asked_of(app, method, path, headers={"Origin": PAGE} | ASKS))
        assert (answer.status_code, cors_headers(answer)) == (200, set())
        assert cors_headers(run(asked_of(app, method, "/jsonrpc", headers={"Origin": PAGE} | ASKS)))


async def plain(scope: Any, receive: Any, send: Any) -> None:
    """Answer as a view of any path does."""
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"a page"})


# ----------------------------------------------------------------------- answers


@pytest.fixture
def answer_to(written_behind: None, owner: Person) -> Asked:
    """Return a function that calls as a page of a listed origin, with the owner's key."""

    def answer_to(method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"Origin": PAGE, "Authorization": f"Bearer {owner.key}"} | more.pop("headers", {})
        return run(asked(LISTED, method, path, headers=headers, **more))

    return answer_to


@pytest.mark.django_db(transaction=True)
def test_every_answer_of_ours_can_be_read_by_a_listed_page(answer_to: Asked, settings: Any) -> None:
    settings.A2A_BODY_SECONDS = 0.05
    late = answer_to("POST", "/jsonrpc", content=stalled(), headers=JSON)
    settings.A2A_BODY_SECONDS = PATIENCE
    large = {"Content-Type": "application/json", "Content-Length": "9999999"}
    answers = [
        answer_to("POST", "/jsonrpc", content=send(), headers=JSON),
        answer_to("POST", "/jsonrpc", content=call("SendStreamingMessage", PARAMS), headers=JSON),
        answer_to("POST", "/message:stream", json=PARAMS),
        answer_to("GET", "/tasks"),
        answer_to("GET", "/tasks/none"),
        answer_to("POST", "/jsonrpc", content=b"{bad", headers=JSON),
        answer_to("POST", "/jsonrpc", content=send(), headers=JSON | {"Authorization": "Bearer wrong"}),
        answer_to("GET", "/jsonrpc"),
        answer_to("POST", "/jsonrpc", content=b"x"),
        answer_to("POST", "/jsonrpc", content=b"x", headers=large),
        answer_to("POST", "/jsonrpc", content=b" " * 100_000, headers=JSON | {"Authorization": "Bearer wrong"}),
        late,
        answer_to("GET", "/files/none/x"),
        answer_to("GET", "/agent/authenticatedExtendedCard"),
        answer_to("GET", CARD),
        answer_to("GET", CARD, headers={"If-None-Match": "*"}),
        answer_to("GET", "/agents/nobody" + CARD),
    ]
    codes = [200, 200, 200, 200, 404, 200, 401, 405, 415, 413, 401, 408, 403, 200, 200, 304, 404]
    assert [answer.status_code for answer in answers] == codes
    plain = {"cache-control", "content-language", "content-length", "content-type", "last-modified"}
    hidden = {"connection", "content-encoding", "content-security-policy", "referrer-policy", "vary"}
    hidden |= {"x-accel-buffering", "x-content-type-options", "x-frame-options"}
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == PAGE
        assert "Origin" in answer.headers["vary"]
        assert len(answer.headers.get_list("vary")) == 1
        readable = plain | words(answer, "access-control-expose-headers")
        assert set(answer.headers) - readable - hidden - cors_headers(answer) == set()


PARAMS = {"message": {"messageId": "m-2", "role": "ROLE_USER", "parts": [{"text": "hi"}]}}


async def stalled() -> AsyncIterator[bytes]:
    yield b"{"
    await asyncio.Event().wait()


def test_an_unhandled_error_can_be_read_as_well() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 500})
        await send({"type": "http.response.body", "body": b"sorry"})

    answer = run(asked_of(Cors(broken, LISTED), "GET", "/jsonrpc", headers={"Origin": LISTED[1]}))
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (500, LISTED[1])


# ------------------------------------------------------------------------ caches


@pytest.mark.parametrize("path", CACHED)
@pytest.mark.parametrize("origin", [None, PAGE, OTHER])
@pytest.mark.parametrize("known", [False, True], ids=["whole", "304"])
def test_a_cache_keeps_an_answer_for_each_origin(path: str, origin: str | None, known: bool) -> None:
    headers = ({"Origin": origin} if origin else {}) | ({"If-None-Match": "*"} if known else {})
    answer = run(asked(LISTED, "GET", path, headers=headers))
    assert answer.status_code == (304 if known else 200)
    assert "origin" in words(answer, "vary")
    assert answer.headers.get("access-control-allow-origin") == (PAGE if origin == PAGE else None)


@pytest.mark.parametrize("path", CACHED)
def test_with_a_star_all_pages_may_read_and_caches_keep_one_answer(path: str) -> None:
    for origin in (None, PAGE, "null"):
        answer = run(asked(["*"], "GET", path, headers={"Origin": origin} if origin else {}))
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "origin" not in answer.headers.get("vary", "").lower()
    answer = preflight(["*"], path, OTHER)
    assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (204, "*")


# --------------------------------------------------------------- what is allowed

UNLISTED = {
    *("ACCEPT", "ACCEPT_ENCODING", "CONTENT_ENCODING", "COOKIE", "HOST", "ORIGIN"),
    *("SEC_FETCH_SITE", "SEC_WEBSOCKET_KEY", "UPGRADE"),
}
"""Headers that no page sets: they are the browser's own, or need no leave."""


def test_a_page_may_send_every_header_that_this_server_reads() -> None:
    sources = [path.read_text(encoding="utf-8") for path in Path(tasks_app.__path__[0]).rglob("*.py")]
    read = {name for source in sources for name in re.findall(r"\"HTTP_([A-Z0-9_]+)\"", source)}
    read = {name for name in read if "FORWARDED" not in name} - UNLISTED
    assert len(read) > 6
    assert read <= {name.upper().replace("-", "_") for name in cors.REQUEST_HEADERS}


# ------------------------------------------------------------------- the setting


@pytest.mark.parametrize(
    "value", ["", "*", "https://page.example", "http://localhost:3000, https://page.example:444", "http://[::1]:8080"]
)
def test_origins_are_read_as_browsers_write_them(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("X", value)
    assert origins("X") == [item.strip() for item in value.split(",") if item]


@pytest.mark.parametrize(
    ("value", "hint"),
    [
        ("https://Page.Example", "https://page.example"),
        ("https://page.example/", "https://page.example"),
        ("https://page.example:443", "https://page.example"),
        ("http://page.example:80/a?b", "http://page.example"),
        ("https://user@page.example", "https://page.example"),
        ("http://[0:0:0:0:0:0:0:1]:80", "http://[::1]"),
        ("page.example", "https://app.example"),
        ("null", "https://app.example"),
        ("https://", "https://app.example"),
        ("https://*.example", "https://app.example"),
        ("https://page.example:99999", "https://app.example"),
        ("https://bücher.example", "https://app.example"),
        ("ws://page.example", "https://app.example"),
        ("https://page.example,*", "must be the only one"),
    ],
)
def test_a_value_that_is_no_origin_is_refused_with_the_right_spelling(
    monkeypatch: pytest.MonkeyPatch, value: str, hint: str
) -> None:
    monkeypatch.setenv("X", value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(hint)) as refused:
        origins("X")
    assert str(refused.value).startswith("X: ")
