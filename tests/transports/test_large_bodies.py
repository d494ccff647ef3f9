"""Large bodies: read for callers with a key only, bounded in number, and never on the loop for long."""

import asyncio
import socket
import threading
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from django.http import StreamingHttpResponse

from a2a.documents import Pieces
from a2a.errors import Unavailable
from a2a.files import MARK
from tasks_app.asgi.handler import PIECE, _send_chunks, _send_pieces
from tasks_app.exchanges.exchange import OpenExchange
from tasks_app.limits.accounts import Account
from tasks_app.off_loop import LARGE
from tasks_app.operations.large import compute
from tasks_app.operations.operation import Context
from tasks_app.process.asgi_extensions import COMPLETE
from tasks_app.transports import answers, bodies, receiving
from tasks_app.transports.bodies import SMALL, STRANGERS, Gone, Intake, strangers
from tasks_app.transports.http import Refusal
from tasks_app.transports.http_replies import with_spaces
from tests.conftest import NO_TLS, PATIENCE, Server
from tests.support.accounts import holdings
from tests.support.sockets import head, received, status, wire
from tests.transports.calls import call, refusal

DOORS = ["/jsonrpc", "/v1/message:send", "/message:send", "/agents/echo/jsonrpc"]
NESTED = b'{"method":"x","params":' + b"[" * 40 + b"],[".join([b"[" * 10 + b"]" * 10] * 40_000) + b"]" * 40 + b"}"


@pytest.mark.storage
@pytest.mark.usefixtures("unchanged")
class TestOnAServer:
    @pytest.mark.parametrize("key", [None, "nonsense"])
    @pytest.mark.parametrize("path", DOORS)
    def test_a_stranger_is_refused_by_the_head_alone(self, server: Server, path: str, key: str | None) -> None:
        fields = ["Content-Type: application/json", "Content-Length: 900000"]
        with wire(server) as connection:
            connection.sendall(head(f"POST {path} HTTP/1.1", *fields, *([f"X-API-Key: {key}"] if key else [])))
            answer = received(connection)
        assert status(answer) == 401
        assert b"www-authenticate: bearer" in answer.lower()

    def test_a_stranger_is_refused_when_a_body_of_unknown_size_becomes_large(self, server: Server) -> None:
        with wire(server) as connection:
            fields = ["Content-Type: application/json", "Transfer-Encoding: chunked"]
            connection.sendall(
                head("POST /jsonrpc HTTP/1.1", *fields) + b"%x\r\n" % (SMALL + 1) + b" " * (SMALL + 1) + b"\r\n"
            )
            assert status(received(connection)) == 401

    @pytest.mark.parametrize("path", DOORS[:2])
    def test_a_strangers_body_is_not_parsed(self, server: Server, path: str) -> None:
        assert len(NESTED) < 1_000_000
        response = httpx.post(
            server.url + path, content=NESTED, headers={"Content-Type": "application/json"}, verify=NO_TLS
        )
        assert response.status_code == 401

    def test_a_caller_is_told_of_too_many_values(self, caller: httpx.Client) -> None:
        assert len(NESTED) < 1_000_000
        error = refusal(caller.post("/jsonrpc", content=NESTED), 200, -32600)
        assert "50000 values" in error["message"]
        assert "50000 values" in caller.post("/v1/message:send", content=NESTED).text

    def test_a_stranger_hears_of_the_key_first_and_gets_the_id_of_a_small_body(self, server: Server) -> None:
        def post(body: bytes) -> httpx.Response:
            return httpx.post(
                f"{server.url}/jsonrpc", content=body, headers={"Content-Type": "application/json"}, verify=NO_TLS
            )

        refusal(post(call("nope", {"a": "x" * (SMALL - 200)})), 401, -38009, 7)
        refusal(post(b"{"), 401, -38009)
        refusal(post(call("nope", {"a": "x" * SMALL})), 401, -38009, None)

    def test_strangers_share_what_arrives_slowly(self, server: Server, caller: httpx.Client) -> None:
        """Twenty forms of a megabyte that never end are more than strangers may have at once."""
        connections: list[socket.socket] = []
        try:
            for _ in range(20):
                connections.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
                connections[-1].sendall(head("POST /admin/login/ HTTP/1.1", "Content-Length: 1000000"))
            refused = [connection for connection in connections if status(received_now(connection)) == 429]
            assert len(refused) == 4
            refusal(caller.post("/jsonrpc", content=call("nope", {"a": "x" * 900_000})), 200, -32601, 7)
        finally:
            for connection in connections:
                connection.close()


def test_a_large_task_is_answered_whole(server: Server, caller: httpx.Client) -> None:
    """Single, in a batch, compressed, cut and over REST."""

    def send(text: str, **more: Any) -> Any:
        said = {"messageId": text[:20], "role": "ROLE_USER", "parts": [{"text": text}], **more}
        params = {"message": said, "configuration": {"returnImmediately": True}, "metadata": {"agent": "waits"}}
        return caller.post("/jsonrpc", content=call("SendMessage", params)).json()["result"]["task"]

    task_id = send("the first")["id"]
    texts = ["the first", *(letter * 400_000 for letter in "ab")]
    for text in texts[1:]:
        answered = send(text, taskId=task_id)
    asked = call("GetTask", {"id": task_id})
    found = [
        answered,
        caller.post("/jsonrpc", content=asked).json()["result"],
        caller.post("/jsonrpc", content=asked, headers={"Accept-Encoding": "identity"}).json()["result"],
        caller.post("/jsonrpc", content=b"[" + asked + b"]").json()[0]["result"],
        caller.get(f"/tasks/{task_id}").json(),
    ]
    for task in found:
        assert [said["parts"][0]["text"] for said in task["history"]] == texts
    cut = caller.post("/jsonrpc", content=call("GetTask", {"id": task_id, "historyLength": 1})).json()["result"]
    assert [said["parts"][0]["text"] for said in cut["history"]] == texts[-1:]
    caller.post("/jsonrpc", content=call("CancelTask", {"id": task_id}))


def received_now(connection: socket.socket) -> bytes:
    return connection.recv(65_536)


# --------------------------------------------------------------------- one body


def feed(*pieces: bytes, gone: bool = False) -> Callable[[], Awaitable[dict[str, Any]]]:
    """Return a `receive` that gives these pieces."""
    left = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    left[-1]["more_body"] = gone

    async def receive() -> dict[str, Any]:
        return left.pop(0) if left else {"type": "http.disconnect"}

    return receive


def intake(
    receive: Any, owner: int = 7, *, declared: int | None = None, limit: int = 1_000_000, complete: bool = False
) -> Intake:
    async def owner_of(must_be_known: bool, uncounted: int) -> int:
        return owner

    headers = [] if declared is None else [(b"content-length", str(declared).encode())]
    return Intake({"headers": headers, "extensions": {COMPLETE: {}} if complete else {}}, receive, limit, 5, owner_of)


@pytest.fixture(autouse=True)
def _account_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """The account of a process that was just started."""
    monkeypatch.setattr(bodies, "account", Account())


def holdings_of_bodies() -> dict[int | None, int]:
    return {owner: amount for kind, owner, amount in holdings(bodies.account) if kind == "bodies"}


async def test_a_small_body_that_comes_at_once_is_in_no_account() -> None:
    body = intake(feed(b"x" * SMALL), declared=SMALL)
    assert await body.read() == b"x" * SMALL
    assert holdings_of_bodies() == {}


async def test_a_body_that_is_complete_is_measured_like_any_other() -> None:
    assert await intake(feed(b"x" * SMALL), complete=True).read() == b"x" * SMALL
    assert holdings_of_bodies() == {}
    large = intake(feed(b"x" * (SMALL + 1)), complete=True)
    assert len(await large.read()) == SMALL + 1
    assert holdings_of_bodies() == {7: SMALL + 1}
    large.release()
    with pytest.raises(Refusal, match="must have"):
        await intake(feed(b"x" * 11), limit=10, complete=True).read()
    gone = feed(b"")
    await gone()
    with pytest.raises(Gone):
        await intake(gone, complete=True).read()


@pytest.mark.parametrize("declared", [None, 60_000])
async def test_a_large_body_counts_until_it_is_released(declared: int | None) -> None:
    body = intake(feed(b"x" * 20_000, b"y" * 20_000, b"z" * 20_000), declared=declared)
    await body.read()
    assert holdings_of_bodies() == {7: 60_000}
    body.release()
    body.release()
    assert holdings_of_bodies() == {}


async def test_a_body_that_is_taken_over_counts_until_the_taker_releases_it() -> None:
    body = intake(feed(b"x" * 20_000), declared=20_000)
    await body.read()
    weight = body.take_weight()
    body.release()
    assert (holdings_of_bodies(), body.take_weight()) == ({7: 20_000}, None)
    assert weight is not None
    weight.release()
    assert holdings_of_bodies() == {}


async def test_an_owner_has_a_share_and_all_have_a_sum(settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES, settings.A2A_BODIES_BYTES = 100_000, 200_000
    first, second, other = (intake(feed(b"x"), owner, declared=60_000) for owner in (1, 1, 2))
    third = intake(feed(b"x"), 3, declared=60_000)
    await first.read()
    with pytest.raises(Refusal) as refused:
        await second.read()
    assert refused.value.status == 429
    await other.read()
    with pytest.raises(Refusal) as refused:
        await third.read()
    assert refused.value.status == 503
    assert isinstance(refused.value.error, Unavailable)
    for body in (first, second, other, third):
        body.release()
    assert holdings_of_bodies() == {}


async def test_a_body_of_somebody_who_left_is_in_no_account() -> None:
    body = intake(feed(b"x" * 20_000, gone=True))
    with pytest.raises(Gone):
        await body.read()
    assert holdings_of_bodies() == {7: 20_000}
    body.release()
    assert holdings_of_bodies() == {}


async def test_a_body_whose_caller_is_recognised_late_counts_as_that_callers_alone() -> None:
    """Its address had too many wrong keys at first, or the database was away."""
    body = intake(feed(b"x" * 10_000, b"y" * 10_000, b"z" * 10_000))

    async def owner_of(must_be_known: bool, uncounted: int) -> int:
        return 7 if must_be_known else STRANGERS

    body.owner_of = owner_of
    await body.read()
    assert holdings_of_bodies() == {7: 30_000}
    body.release()
    assert holdings_of_bodies() == {}


async def test_strangers_are_one_owner() -> None:
    assert await strangers(True, 0) == await strangers(False, 0) == STRANGERS


@pytest.mark.parametrize(("size", "thread"), [(LARGE // 2, "MainThread"), (LARGE, "large")])
def test_large_answers_are_put_together_and_searched_off_the_loop(
    monkeypatch: pytest.MonkeyPatch, size: int, thread: str
) -> None:
    names: list[str] = []

    def noted(*arguments: Any) -> bytes:
        names.append(threading.current_thread().name.partition("_")[0])
        return b""

    async def answer() -> None:
        work: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        work.set_result([SimpleNamespace(payload=payload) for payload in (b"x" * size, None, b"x")])
        batch: Any = SimpleNamespace(work=work)
        await receiving.Batch.payload(batch)
        call: Any = None
        await answers._link_files(MARK + b"x" * size, call)

    monkeypatch.setattr(receiving, "_array", noted)
    monkeypatch.setattr(answers, "_with_links", noted)
    asyncio.run(answer())
    assert names == [thread] * 2


async def test_others_have_their_turn_between_the_pieces_of_an_answer() -> None:
    turns: list[str] = []

    async def send(message: Any) -> None:
        turns.append("piece")

    async def other() -> None:
        for _ in range(3):
            turns.append("other")
            await asyncio.sleep(0)

    work = asyncio.ensure_future(other())
    await _send_pieces(b"x" * (3 * PIECE), send, more=False)
    await work
    assert turns == ["piece", "other"] * 2 + ["piece", "other"]


async def test_others_have_their_turn_between_the_parts_of_a_late_answer() -> None:
    turns: list[str] = []

    async def begin() -> Pieces:
        return Pieces([b"x" * PIECE] * 3)

    async def send(message: Any) -> None:
        if len(message.get("body", b"")) == PIECE:
            turns.append("piece")

    async def other() -> None:
        while len(turns) < 20:
            turns.append("other")
            await asyncio.sleep(0)

    work = asyncio.ensure_future(other())
    await _send_chunks(StreamingHttpResponse(with_spaces(begin)), {}, send)
    await work
    first = turns.index("piece")
    assert turns[first : first + 6] == ["piece", "other"] * 3


@pytest.mark.parametrize(("size", "thread"), [(LARGE, "MainThread"), (LARGE + 1, "large")])
async def test_a_large_message_is_encoded_off_the_loop(size: int, thread: str) -> None:
    exchange = OpenExchange(door="http", request_id="", rpc_id=1, request=b"x" * size)
    caller: Any = None
    step = compute(Context(caller=caller, exchange=exchange), lambda: threading.current_thread().name)
    try:
        name = await step.send(None).start()  # type: ignore[attr-defined]  # it awaits nothing else
    except StopIteration as end:
        name = end.value
    assert name.partition("_")[0] == thread
