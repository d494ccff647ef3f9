"""Whole answers, which a connection writes at once in place of the messages of ASGI."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tasks_app.process.asgi_extensions import WHOLE
from tests.support.wire_server import Served, served

HEADERS = [(b"content-type", b"text/plain"), (b"x-name", b"\xe9 and\ttab")]
BODY = b"all of it"


async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """Answer, and see the messages of answers if the path is of those that are seen."""

    async def see(message: dict[str, Any]) -> None:
        await send(message | {"headers": [*message.get("headers", []), (b"x-seen", b"yes")]})

    await answer(scope, receive, see if "seen" in scope["path"] else send)


async def answer(scope: dict[str, Any], _: Any, send: Any) -> None:
    """Answer a path with the same content: /whole at once, if that is offered and possible, and others in messages."""
    status = 204 if "204" in scope["path"] else 200
    body = b"" if status == 204 else BODY
    headers = [*HEADERS, (b"content-length", str(len(body)).encode())]
    if "broken" in scope["path"]:
        headers.append((b"x-broken", scope["query_string"].replace(b"~", b"\n").replace(b"^", b"\0")))
    if scope["path"].startswith("/whole") and scope["extensions"][WHOLE]((status, headers, body), send):
        return
    if scope["path"].startswith("/whole"):
        headers.append((b"x-in", b"messages"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
async def server() -> AsyncIterator[Served]:
    """Serve the application with our connections."""
    async with served(app) as server:
        yield server


@pytest.mark.parametrize("path", ["", "-204"])
@pytest.mark.parametrize("line", ["GET /{} HTTP/1.1\r\nConnection: close", "POST /{} HTTP/1.0"])
async def test_a_whole_answer_has_the_bytes_of_its_messages(server: Served, line: str, path: str) -> None:
    whole = await server.ask(line.format(f"whole{path}"))
    assert whole == await server.ask(line.format(f"messages{path}"))
    assert whole.endswith(b"\r\n\r\n" + (b"" if path else BODY))
    assert b"connection: close" in whole


async def test_requests_on_one_connection_are_answered_in_their_order(server: Served) -> None:
    get = "GET /{} HTTP/1.1"
    answers = await server.ask(
        get.format("whole"), get.format("whole-204"), f"{get.format('whole')}\r\nConnection: close"
    )
    assert [answer[:3] for answer in answers.split(b"HTTP/1.1 ")[1:]] == [b"200", b"204", b"200"]


async def test_a_head_request_is_answered_in_messages(server: Served) -> None:
    answer = await server.ask("HEAD /whole HTTP/1.1\r\nConnection: close")
    assert b"x-in: messages" in answer
    assert b"content-length: 9" in answer
    assert BODY not in answer


async def test_an_application_between_sees_the_messages_of_each_answer(server: Served) -> None:
    answer = await server.ask("GET /whole-seen HTTP/1.1\r\nConnection: close")
    assert b"x-seen: yes" in answer
    assert answer.endswith(BODY)


@pytest.mark.parametrize("value", ["~x-forged:1", "~~<html>", "a^b", "odd~"])
async def test_a_header_with_a_control_character_is_never_written(
    server: Served, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await server.ask(f"GET /whole-broken?{value} HTTP/1.1\r\nConnection: close")
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert b"x-broken" not in answer
    assert value.strip("~").encode() not in answer
    assert "control character" in caplog.text
