"""The handshake: paths, origins and credentials; a refusal is an answer of HTTP before the upgrade."""

from typing import Any

import httpx
import pytest

from tasks_app.limits.accounts import account
from tasks_app.transports.websocket import WebSocket
from tests.conftest import Person, Server
from tests.support.accounts import holdings
from tests.support.servers import NO_TLS
from tests.transports.websocket.door import (
    bearer,
    call,
    dialled,
    first_answer,
    frames_of,
    message,
    next_frame,
    protocol_of,
    refused,
)
from tests.transports.websocket.serving import connected, eventually, serving, url

pytestmark = pytest.mark.storage


@pytest.mark.parametrize("path", ["/ws", "/ws/", "/agents/echo/ws", "/echo/ws"])
@pytest.mark.requirement("SPARC-18")
async def test_each_path_answers_calls(server: Server, path: str) -> None:
    assert (await first_answer(server.url, path, **bearer(server.owner)))["error"]["code"] == -32001


async def test_the_agent_of_the_path_answers(server: Server) -> None:
    for path, kind in (("/agents/replies/ws", "message"), ("/replies/ws", "message"), ("/ws", "task")):
        async with dialled(server.url, path, **bearer(server.owner)) as client:
            await client.send(call(1, "SendMessage", {"message": message(id=path)}))
            assert kind in (await next_frame(client))["result"]


@pytest.mark.parametrize("path", ["/agents/nobody/ws", "/nobody/ws"])
async def test_an_unknown_agent_is_named_as_over_http(server: Server, path: str) -> None:
    status, error, _ = await refused(server.url, path, **bearer(server.owner))
    assert (status, error["code"]) == (404, -38005)
    assert error["message"] == (
        'No such agent or skill: there is no agent "nobody"; GET /agents/ lists the agents and their skills'
    )


@pytest.mark.parametrize("path", ["/admin/ws", "/agents/ws", "/jsonrpc", "/a/b/ws"])
async def test_a_path_without_an_agent_is_not_found(server: Server, path: str) -> None:
    status, error, _ = await refused(server.url, path, **bearer(server.owner))
    assert (status, error["code"]) == (404, -32600)


async def test_a_key_is_asked_for_as_over_http(server: Server) -> None:
    status, error, headers = await refused(server.url)
    assert (status, error["code"], headers["www-authenticate"]) == (401, -38009, 'Bearer realm="taskdesk"')
    assert "or X-API-Key. A browser, which sends no such header, uses a sub-protocol or a ticket" in error["message"]
    status, error, headers = await refused(server.url, "/agents/nobody/ws", **bearer("tdk_wrong"))
    assert (status, error["code"]) == (401, -38009)
    assert 'error="invalid_token"' in headers["www-authenticate"]


async def test_a_key_may_come_in_a_header_of_its_own(server: Server) -> None:
    answer = await first_answer(server.url, additional_headers={"X-API-Key": server.owner})
    assert answer["error"]["code"] == -32001


async def test_a_key_may_come_as_a_sub_protocol_and_is_not_sent_back(server: Server) -> None:
    async with dialled(server.url, subprotocols=["a2a", protocol_of(server.stranger)]) as client:
        assert client.subprotocol == "a2a"
        assert client.response is not None
        assert "bearer" not in str(client.response.headers).lower()
        await client.send(call(1, "GetTask", {"id": "none"}))
        assert (await next_frame(client))["error"]["code"] == -32001
    encoded = protocol_of("tdk_wrong")
    wrongs = {encoded: "unknown", "bearer.%": "a ticket", "bearer.": "a ticket", "bearer._w": "base64url"}
    for wrong, reason in wrongs.items():
        status, error, _ = await refused(server.url, subprotocols=["a2a", wrong])
        assert (status, error["code"]) == (401, -38009)
        assert reason in error["message"]
    stored = str(server.rows("select * from tasks_app_exchange")) + str(
        server.rows("select * from tasks_app_exchangebody")
    )
    for secret in (server.stranger, protocol_of(server.stranger)):
        assert secret not in server.log.read_text()
        assert secret not in stored


@pytest.mark.parametrize("path", ["/ws", "/ws/", "/agents/echo/ws"])
async def test_a_request_without_an_upgrade_is_told_what_the_path_is_for(server: Server, path: str) -> None:
    async with httpx.AsyncClient(verify=NO_TLS) as http:
        answer = await http.get(server.url + path)
    assert answer.status_code == 404
    assert "this path is for WebSocket connections" in answer.json()["error"]["message"]


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
async def test_a_page_of_another_origin_is_refused(server: Server, origin: str) -> None:
    status, error, _ = await refused(server.url, origin=origin, **bearer(server.owner))
    assert (status, error["code"]) == (403, -32600)
    assert "A2A_CORS_ORIGINS" in error["message"]


async def test_a_page_of_our_own_origin_is_welcome(server: Server) -> None:
    assert (await first_answer(server.url, origin=server.url, **bearer(server.owner)))["id"] == 1


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("listed", ["https://app.example", "*"])
async def test_a_page_of_a_listed_origin_is_welcome(owner: Person, service: None, settings: Any, listed: str) -> None:
    settings.A2A_CORS_ORIGINS = [listed]
    async with connected(owner, origin="https://app.example") as (client, _):
        await client.send(call(1, "GetTask", {"id": "none"}))
        assert (await next_frame(client))["id"] == 1


@pytest.mark.django_db(transaction=True)
async def test_an_owner_has_only_so_many_sockets(owner: Person, stranger: Person, service: None, settings: Any) -> None:
    settings.A2A_OWNER_SOCKETS = 1
    async with serving() as server:
        async with dialled(url(server), **bearer(owner.key)):
            status, error, headers = await refused(url(server), **bearer(owner.key))
            assert (status, error["code"], headers["retry-after"]) == (429, -38008, "5")
            async with dialled(url(server), **bearer(stranger.key)):
                pass
        await eventually(lambda: not holdings(account))
        async with dialled(url(server), **bearer(owner.key)):
            pass


async def test_a_version_in_the_address_is_that_of_all_calls(server: Server) -> None:
    async with dialled(server.url, "/ws?A2A-Version=9.9", **bearer(server.owner)) as client:
        await client.send('{"jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {"id": "none"}}')
        assert (await next_frame(client))["error"]["code"] == -32009
        await client.send(call(2, "GetTask", {"id": "none"}))
        assert (await next_frame(client))["error"]["code"] == -32001
        await client.send(b"{}")
        assert await frames_of(client) == []
    assert client.close_code == 1003


@pytest.mark.parametrize("can_answer", [True, False])
async def test_a_server_without_limits_for_sockets_is_refused(owner: Person, service: None, can_answer: bool) -> None:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.disconnect" if sent else "websocket.connect", "code": 1000}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    headers = [(b"authorization", f"Bearer {owner.key}".encode())]
    scope = {"type": "websocket", "path": "/ws", "headers": headers, "query_string": b"", "subprotocols": []}
    extensions: dict[str, Any] = {"websocket.http.response": {}} if can_answer else {}
    await WebSocket.as_asgi()(scope | {"extensions": extensions}, receive, send)
    if can_answer:
        assert sent[0]["status"] == 501
        assert b"use manage.py run or manage.py serve" in sent[1]["body"]
    else:
        assert [message["type"] for message in sent] == ["websocket.close"]
