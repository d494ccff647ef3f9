"""Tickets: how a page in a browser gets one and opens a socket with it, once."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from websockets import InvalidStatus

from tasks_app import clock
from tasks_app.asgi.handler import LeanHandler
from tasks_app.callers import tickets
from tasks_app.callers.access import digests, revoke
from tasks_app.exchanges.recording import recorder
from tasks_app.limits.accounts import account
from tasks_app.models import ApiKey, Exchange, ExchangeBody, SocketTicket
from tasks_app.transports import keys, websocket
from tests.conftest import NO_TLS, PATIENCE, Person, Server
from tests.support.accounts import holdings
from tests.transports.websocket.door import (
    bearer,
    call,
    dialled,
    first_answer,
    frames_of,
    next_frame,
    protocol_of,
    refused,
)
from tests.transports.websocket.serving import DOORS, eventually, in_a_thread, serving, url

pytestmark = pytest.mark.storage
OPEN, REFUSED = 101, 401
PATHS = ["/ws", "/ws/", "/agents/echo/ws", "/echo/ws"]
service = pytest.mark.usefixtures("service")
database = pytest.mark.django_db(transaction=True)


async def posted(base: str, path: str = "/ws/ticket", verb: str = "POST", **headers: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=NO_TLS, timeout=PATIENCE) as http:
        return await http.request(verb, base + path, headers=headers)


async def ticket_of(base: str, key: str, path: str = "/ws/ticket") -> str:
    answer = await posted(base, path, Authorization=f"Bearer {key}")
    assert answer.status_code == 200, answer.text
    return str(answer.json()["ticket"])


async def opened(base: str, ticket: str, path: str = "/ws", **more: Any) -> int:
    """Return the status of a handshake with a ticket; that of success once a call is answered."""
    try:
        answer = await first_answer(base, f"{path}?ticket={ticket}", **more)
    except InvalidStatus as error:
        return error.response.status_code
    assert answer["error"]["code"] == -32001
    return OPEN


# ----------------------------------------------------------------- what works


@pytest.mark.parametrize("path", PATHS)
async def test_a_ticket_opens_one_socket(server: Server, path: str) -> None:
    before = datetime.now(UTC)
    answer = await posted(server.url, path.rstrip("/") + "/ticket", **{"X-API-Key": server.owner})
    assert (answer.status_code, set(answer.json())) == (200, {"ticket", "expiresAt"})
    assert answer.headers["Cache-Control"] == "no-store"
    until = datetime.fromisoformat(answer.json()["expiresAt"])
    assert timedelta(seconds=59) < until - before < timedelta(seconds=61 + PATIENCE)
    assert await opened(server.url, answer.json()["ticket"], path) == OPEN
    assert await opened(server.url, answer.json()["ticket"], path) == REFUSED


async def test_a_ticket_of_one_path_opens_the_socket_of_another(server: Server) -> None:
    for bought, used in (
        ("/ws/ticket/", "/agents/echo/ws"),
        ("/agents/echo/ws/ticket", "/ws"),
        ("/echo/ws/ticket", "/ws"),
    ):
        assert await opened(server.url, await ticket_of(server.url, server.owner, bought), used) == OPEN


async def test_the_socket_of_a_ticket_is_the_callers(server: Server) -> None:
    async with dialled(server.url, **bearer(server.owner)) as client:
        message = {"messageId": "of-the-owner", "role": "ROLE_USER", "parts": [{"text": "mine"}]}
        await client.send(call(1, "SendMessage", {"message": message}))
        task_id = (await next_frame(client))["result"]["task"]["id"]
    for key, is_owner in ((server.owner, True), (server.stranger, False)):
        ticket = await ticket_of(server.url, key)
        async with dialled(server.url, f"/ws?A2A-Version=1.0&ticket={ticket}") as client:
            await client.send(call(1, "GetTask", {"id": task_id}))
            assert ("result" in await next_frame(client)) is is_owner


# ------------------------------------------------------- what gives no ticket


async def test_a_ticket_needs_a_key(server: Server) -> None:
    count = "select count(*) from tasks_app_socketticket"
    for headers, challenge in (
        ({}, 'Bearer realm="taskdesk"'),
        ({"Authorization": "Bearer tdk_wrong"}, 'Bearer realm="taskdesk", error="invalid_token"'),
        ({"X-API-Key": await ticket_of(server.url, server.owner)}, 'Bearer realm="taskdesk", error="invalid_token"'),
    ):
        before = server.rows(count)
        answer = await posted(server.url, **headers)
        assert (answer.status_code, answer.json()["error"]["code"]) == (401, -38009)
        assert answer.headers["WWW-Authenticate"] == challenge
        assert server.rows(count) == before


@pytest.mark.parametrize("verb", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
async def test_a_ticket_is_asked_for_by_post(server: Server, verb: str) -> None:
    answer = await posted(server.url, verb=verb, Authorization=f"Bearer {server.owner}")
    assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")


@pytest.mark.parametrize(
    "path", ["/agents/nobody/ws/ticket", "/nobody/ws/ticket", "/agents/ws/ticket", "/a/b/ws/ticket"]
)
async def test_without_an_agent_there_is_no_ticket(server: Server, path: str) -> None:
    assert (await posted(server.url, path, Authorization=f"Bearer {server.owner}")).status_code == 404


@pytest.mark.parametrize("path", ["/ws/ticket/x", "/ws/tickets", "/jsonrpc/ticket", "/admin/ws/ticket"])
async def test_no_other_path_gives_a_ticket(server: Server, path: str) -> None:
    answer = await posted(server.url, path, Authorization=f"Bearer {server.owner}")
    assert "tdk_ticket" not in answer.text
    assert answer.status_code != 200


# --------------------------------------------------- what leaves a ticket whole


async def test_wrong_tickets_open_nothing(server: Server) -> None:
    unknown = tickets.PREFIX + "x" * 43
    for wrong in (unknown, "", server.owner, "%00", "%ff", "x" * 5_000, "%27%3Bdrop"):
        status, error, headers = await refused(server.url, f"/ws?ticket={wrong}")
        assert (status, error["code"]) == (401, -38009)
        assert "ticket" in error["message"]
        assert 'error="invalid_token"' in headers["www-authenticate"]


async def test_a_refused_handshake_leaves_the_ticket(server: Server) -> None:
    ticket, other = [await ticket_of(server.url, server.owner) for _ in range(2)]
    address = f"/ws?ticket={ticket}"
    assert (await refused(server.url, address, origin="https://evil.example"))[0] == 403
    assert (await refused(server.url, f"/agents/nobody/ws?ticket={ticket}"))[0] == 404
    for more in (bearer(server.owner), bearer(server.stranger), {"subprotocols": ["a2a", protocol_of(server.owner)]}):
        status, error, _ = await refused(server.url, address, **more)
        assert (status, error["code"]) == (400, -32600)
    assert (await refused(server.url, f"{address}&ticket={other}"))[0] == 400
    assert (await refused(server.url, f"{address}&{'&'.join('x=1' for _ in range(1_001))}"))[0] == 401
    assert await opened(server.url, ticket, origin=server.url) == OPEN
    assert await opened(server.url, other) == OPEN


# ---------------------------------------------------------- once, and not kept


async def test_one_of_many_sockets_with_one_ticket_opens(server: Server) -> None:
    for _ in range(3):
        ticket = await ticket_of(server.url, server.owner)
        statuses = await asyncio.gather(*(opened(server.url, ticket) for _ in range(12)))
        assert sorted(statuses) == [OPEN, *[REFUSED] * 11]


async def test_a_ticket_is_neither_logged_nor_stored(server: Server) -> None:
    unused, used = [await ticket_of(server.url, server.owner) for _ in range(2)]
    await opened(server.url, used)
    await opened(server.url, used)
    await refused(server.url, f"/ws?ticket={unused}", origin="https://evil.example")
    rows = "select request, response from tasks_app_exchangebody b join tasks_app_exchange e on e.id = b.exchange_id"
    async with asyncio.timeout(PATIENCE):
        while not (  # noqa: ASYNC110  # nothing tells of it
            issued := server.rows(f"{rows} where request = 'POST /ws/ticket' and outcome = 'result'")
        ):
            await asyncio.sleep(0.05)
    assert '"ticket":"[redacted]"' in str(issued)
    assert server.rows("select * from tasks_app_socketticket")
    tables = ("exchange", "exchangebody", "socketticket")
    stored = "".join(str(server.rows(f"select * from tasks_app_{table}")) for table in tables)  # noqa: S608
    for ticket in (unused, used):
        assert ticket.removeprefix(tickets.PREFIX) not in stored + server.log.read_text()


@database
@service
async def test_no_server_logs_the_query_of_a_handshake(owner: Person, caplog: pytest.LogCaptureFixture) -> None:
    """Ours is silent below warnings. uvicorn, started by itself, logs the address of each socket."""
    async with both_doors() as base:
        with caplog.at_level(logging.INFO, "uvicorn.error"):
            ticket = await ticket_of(base, owner.key)
            await refused(base, f"/ws?ticket={ticket}", origin="https://evil.example")
            assert await opened(base, ticket) == OPEN
    assert '"WebSocket /ws" [accepted]' in caplog.text
    assert '"WebSocket /ws" 403' in caplog.text
    assert ticket not in caplog.text


# -------------------------------------------------------- limits, and their end


@asynccontextmanager
async def both_doors() -> AsyncIterator[str]:
    """Yield the address of a server with the lean handler and the WebSocket door."""
    async with serving({"http": LeanHandler(), **DOORS}) as server:
        yield url(server)


@database
@service
async def test_an_expired_ticket_opens_nothing(owner: Person, settings: Any) -> None:
    settings.A2A_TICKET_SECONDS = 7
    async with both_doors() as base:
        ticket = await ticket_of(base, owner.key)
        row = await in_a_thread(SocketTicket.objects.get)
        assert 0 < (row.expires_at - clock.now()).total_seconds() <= 7
        await in_a_thread(lambda: SocketTicket.objects.update(expires_at=clock.now()))
        assert await opened(base, ticket) == REFUSED


@database
@service
async def test_a_ticket_dies_with_its_key(owner: Person, fresh_keys: None) -> None:
    async with both_doors() as base:
        ticket = await ticket_of(base, owner.key)
        await in_a_thread(lambda: revoke(ApiKey.objects.filter(pk=owner.caller.key_id)))
        keys._cache.clear()
        assert await opened(base, ticket) == REFUSED


@database
@service
async def test_a_ticket_of_a_key_opens_nothing_when_no_scheme_takes_keys(owner: Person, settings: Any) -> None:
    async with both_doors() as base:
        ticket = await ticket_of(base, owner.key)
        settings.A2A_SCHEMES = ("oidc",)
        assert await opened(base, ticket) == REFUSED
        settings.A2A_SCHEMES = ("bearer",)
        assert await opened(base, ticket) != REFUSED


@database
@service
async def test_a_revoked_key_ends_the_socket_of_its_ticket(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "TRUSTED_SECONDS", 0.0)
    async with both_doors() as base:
        for idle in (False, True):
            monkeypatch.setattr(websocket, "KEY_SECONDS", 0.2 if idle else PATIENCE)
            ticket = await ticket_of(base, owner.key)
            async with dialled(base, f"/ws?ticket={ticket}") as client:
                await in_a_thread(lambda: revoke(ApiKey.objects.filter(pk=owner.caller.key_id)))
                if idle:
                    assert await frames_of(client) == []
                    assert client.close_code == 1008
                else:
                    await client.send(call(1, "GetTask", {"id": "none"}))
                    assert (await next_frame(client))["error"]["code"] == -38009
            await in_a_thread(lambda: ApiKey.objects.update(revoked_at=None))


@database
@service
async def test_a_key_with_several_rows_ends_with_one_of_them(owner: Person, settings: Any) -> None:
    """A key is stored under several secrets if the secret changed while the key was given by its environment."""
    former = ApiKey.objects.filter(pk=owner.caller.key_id)
    row = await in_a_thread(former.get)
    settings.SECRET_KEY_FALLBACKS = ["a former secret, which is long enough for it"]
    row.pk, row.digest = None, digests(owner.key)[1]
    await in_a_thread(row.save)
    async with both_doors() as base:
        ticket, other = [await ticket_of(base, owner.key) for _ in range(2)]
        assert await opened(base, ticket) == OPEN
        await in_a_thread(lambda: revoke(ApiKey.objects.filter(digest=digests(owner.key)[1])))
        keys._cache.clear()
        assert await opened(base, other) == REFUSED


@database
@service
async def test_an_owner_has_only_so_many_unused_tickets(owner: Person, stranger: Person, settings: Any) -> None:
    settings.A2A_OWNER_TICKETS = 2
    headers = {"Authorization": f"Bearer {owner.key}"}
    async with both_doors() as base:
        answers = await asyncio.gather(*(posted(base, **headers) for _ in range(5)))
        assert sorted(answer.status_code for answer in answers) == [200, 200, 429, 429, 429]
        refusal = next(answer for answer in answers if answer.status_code == 429)
        assert refusal.json()["error"]["code"] == -38008
        assert 0 < int(refusal.headers["Retry-After"]) <= 60
        assert await opened(base, await ticket_of(base, stranger.key)) == OPEN
        issued = [answer.json()["ticket"] for answer in answers if answer.status_code == 200]
        assert await opened(base, issued[0]) == OPEN
        await ticket_of(base, owner.key)
        assert (await posted(base, **headers)).status_code == 429
        await in_a_thread(lambda: SocketTicket.objects.update(expires_at=clock.now()))
        await ticket_of(base, owner.key)
        assert await in_a_thread(SocketTicket.objects.count) == 1, "the expired ones are gone"


@database
@service
async def test_a_full_server_leaves_the_ticket(owner: Person, settings: Any) -> None:
    settings.A2A_OWNER_SOCKETS = 1
    async with both_doors() as base:
        ticket = await ticket_of(base, owner.key)
        async with dialled(base, **bearer(owner.key)):
            assert (await refused(base, f"/ws?ticket={ticket}"))[0] == 429
        await eventually(lambda: not holdings(account))
        assert await opened(base, ticket) == OPEN
        await eventually(lambda: not holdings(account))
        assert await opened(base, ticket) == REFUSED
        assert not holdings(account), "a refused handshake holds nothing"


@database
@service
async def test_a_ticket_that_another_takes_first_opens_nothing(owner: Person, monkeypatch: pytest.MonkeyPatch) -> None:
    async def take_before(ticket: str) -> None:
        await in_a_thread(SocketTicket.objects.all().delete)
        await use_up(ticket)

    use_up: Callable[[str], Awaitable[None]] = tickets.use_up
    monkeypatch.setattr(tickets, "use_up", take_before)
    async with both_doors() as base:
        assert await opened(base, await ticket_of(base, owner.key)) == REFUSED
        await eventually(lambda: not holdings(account))


@database
@service
async def test_a_ticket_is_recorded_with_its_caller(owner: Person) -> None:
    async with both_doors() as base:
        await ticket_of(base, owner.key)
        assert (await posted(base)).status_code == 401
    assert await asyncio.to_thread(recorder.drain, PATIENCE)
    issued, turned_away = await in_a_thread(lambda: list(Exchange.objects.order_by("created_at")))
    assert (issued.door, issued.outcome, issued.http_status) == ("websocket", "result", 200)
    assert issued.method == "tickets/create"
    assert (issued.caller_id, turned_away.caller_id, turned_away.http_status) == (owner.caller.owner_id, None, 401)
    body = await in_a_thread(lambda: ExchangeBody.objects.get(exchange_id=issued.id))
    assert body.request == "POST /ws/ticket"
