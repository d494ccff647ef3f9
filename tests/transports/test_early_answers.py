"""Early answers, which a connection writes without the application, and what it reads meanwhile."""

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from tasks_app.process import answering
from tasks_app.process.answering import Early, Whole
from tasks_app.process.connections import MAX_BEHIND, MAX_OWED, MAX_PIPELINE, MAX_UNREAD, Connection
from tasks_app.process.displacing import displace, waiting
from tests.conftest import PATIENCE
from tests.support.wire_server import Served, served
from tests.transports.websocket.serving import eventually

ONE_READ = 300_000
"""More bytes than one read of the loop brings."""


class Refusing:
    """An application in front of which each request is refused by its path, at once or a moment later."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        """The paths that the application has answered itself."""

    def refuse_early(self, scope: dict[str, Any]) -> Early | None:
        """Return what refuses a request, but for a path with `app`."""
        path = scope["path"]
        whole: Whole = (401, [(b"content-length", str(len(path)).encode())], path.encode())

        def early(_: bytes) -> Any:
            if "later" not in path:
                return whole
            future = asyncio.get_running_loop().create_future()
            asyncio.get_running_loop().call_later(0.001, future.set_result, None if "passed" in path else whole)
            return future

        return None if "app" in path else early

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.calls.append(scope["path"])
        body = scope["path"].encode()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
        await send({"type": "http.response.body", "body": body})


def bodies(answer: bytes) -> list[str]:
    """Return the paths in the bodies of answers, in their order."""
    return [part.split(b"HTTP/1.1")[0].decode() for part in answer.split(b"\r\n\r\n")[1:]]


@pytest.mark.parametrize("kinds", [["now"], ["later"], ["later", "now", "app"], ["app", "later-passed", "now"]])
async def test_requests_behind_each_other_are_refused_early_in_their_order(kinds: list[str]) -> None:
    number = MAX_PIPELINE if kinds[0] == "now" else MAX_OWED // 3_000  # less may come behind a refusal that waits
    paths = [f"/{kinds[place % len(kinds)]}/{place}" for place in range(number)]
    app = Refusing()
    async with served(app) as server:
        heads = [f"GET {path} HTTP/1.1" for path in paths]
        answer = await server.ask(*heads[:-1], heads[-1] + "\r\nConnection: close")
    assert bodies(answer) == paths
    assert app.calls == [path for path in paths if "app" in path or "passed" in path]


BODY = {
    "a length": b"Content-Length: 4\r\n\r\nbody",
    "chunks": b"Transfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
}


@pytest.mark.parametrize("kind", ["now", "later"])
@pytest.mark.parametrize("name", BODY)
async def test_a_request_whose_body_comes_behind_its_head_is_refused_early(
    kind: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "REST_SECONDS", 10 * PATIENCE)
    app = Refusing()
    async with served(app) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        request = f"POST /{kind} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n".encode() + BODY[name]
        place = request.index(b"body") + 2
        writer.write(request[:place])
        while not bytes_of_bodies(server):  # noqa: ASYNC110  # no Event there
            await asyncio.sleep(0.001)
        writer.write(request[place:])
        answer = await reader.read()
        writer.close()
    assert (bodies(answer), app.calls) == ([f"/{kind}"], [])


async def test_the_application_begins_when_a_body_is_long_in_coming() -> None:
    app = Refusing()
    async with served(app) as server:
        assert bodies(await server.ask("POST /now HTTP/1.1\r\nConnection: close\r\nContent-Length: 4")) == ["/now"]
    assert app.calls == ["/now"]


@pytest.mark.parametrize("field", ["Expect: 100-continue\r\nContent-Length: 4", "Content-Length: 20000"])
async def test_the_application_begins_at_once_with_a_body_that_waits_or_is_large(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "REST_SECONDS", 10 * PATIENCE)
    app = Refusing()
    async with served(app) as server:
        await server.ask(f"POST /now HTTP/1.1\r\nConnection: close\r\n{field}")
    assert app.calls == ["/now"]


class Departing:
    """An application that awaits the departure of its client again and again, as a call does that waits."""

    looks = 0
    answers = 0

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        while scope["path"] == "/waits" and self.looks < 100:
            self.looks += 1
            with suppress(TimeoutError):
                async with asyncio.timeout(0.002):
                    await receive()
        while scope["path"] == "/body" and (await receive()).get("more_body"):
            pass
        self.answers += 1
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


async def test_bytes_behind_a_call_that_waits_are_bounded_however_often_it_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Departing()
    most = 0
    async with served(app) as server, asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /waits HTTP/1.1\r\nHost: x\r\n\r\n")
        writer.write(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\nConnection: close\r\n\r\n")
        writer.write(b" " * 4_000_000)
        while app.looks < 100:
            most = max(most, pending_in(server))
            await asyncio.sleep(0.001)
        answers = await reader.read()
        writer.close()
    assert MAX_UNREAD < most < MAX_UNREAD + ONE_READ
    # The rest was read once the first call was answered.
    assert answers.count(b"HTTP/1.1 204") == app.answers == 2


def bytes_of_bodies(server: Served) -> int:
    """Return the bytes that connections have received of the bodies of their last requests."""
    connections = [one for one in server.state.connections if isinstance(one, Connection)]
    return sum(len(one.cycle.body) for one in connections if one.cycle)


def pending_in(server: Served) -> int:
    """Return the bytes that connections have read and not parsed."""
    return sum(len(getattr(one, "pending", b"")) for one in server.state.connections)


class Pending(Refusing):
    """An application in front of which each refusal waits until the test gives it."""

    def __init__(self) -> None:
        super().__init__()
        self.futures: list[asyncio.Future[Whole | None]] = []

    def refuse_early(self, scope: dict[str, Any]) -> Early | None:
        def early(_: bytes) -> Any:
            self.futures.append(asyncio.get_running_loop().create_future())
            return self.futures[-1]

        return early


@pytest.mark.parametrize("refusal", [(401, [(b"content-length", b"0")], b""), None], ids=["refused", "passed"])
async def test_a_new_connection_may_replace_one_whose_refusal_waits(refusal: Whole | None) -> None:
    app = Pending()
    async with served(app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: len(app.futures) == 1)
        (connection,) = server.state.connections
        assert connection in waiting
        app.futures[0].set_result(refusal)
        assert (await reader.readline()).startswith(b"HTTP/1.1 401" if refusal else b"HTTP/1.1 200")
        assert connection.place is None
        writer.write(b"GET /two HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: len(app.futures) == 2)
        assert displace()
        await eventually(app.futures[1].done)
        writer.close()
    assert app.calls == ([] if refusal else ["/one"])


async def test_a_connection_with_many_requests_behind_a_refusal_that_waits_is_closed() -> None:
    app = Pending()
    request = b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n"
    async with served(app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write((MAX_OWED // 2_000 + 2) * request)
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
    assert (app.calls, len(app.futures)) == ([], 1)


async def test_a_connection_whose_refusal_waits_takes_little_memory_behind_it() -> None:
    app = Pending()
    async with served(app) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET /one HTTP/1.1\r\nHost: x\r\n\r\n")
        await eventually(lambda: len(app.futures) == 1)
        writer.write(b"x" * (MAX_BEHIND + 1))
        with suppress(ConnectionResetError):
            assert await reader.read() == b"", "the connection is closed"
        writer.close()
    assert app.calls == []
