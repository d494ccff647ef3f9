"""The description of the endpoints with an envelope: by GET, by rpc.discover, over each door, and as it is recorded."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from django.test import AsyncClient

from a2a.languages import ALL
from tasks_app.descriptions import pages
from tests.conftest import NO_TLS, PATIENCE, Person, Server
from tests.support.exchanges import recorded
from tests.transports.calls import call
from tests.transports.websocket.door import bearer, dialled, next_frame

PATH = "/openrpc.json"


def got(caller: httpx.Client, path: str = PATH, **headers: str) -> Any:
    response = caller.get(path, headers=headers)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json"), response.text
    return response.json()


def names(document: Any) -> list[str]:
    return [method["name"] for method in document["methods"]]


def test_the_description_lists_the_methods_that_the_version_can_call(caller: httpx.Client) -> None:
    new, old, oldest = (ALL.by_name[f"a2a-{version}"].methods for version in ("1.0", "0.3", "0.2"))
    always = ["rpc.discover", *ALL.by_name["acp"].methods, *ALL.by_name["zone"].methods]
    sparc = [name for name in ALL.by_name["sparc"].methods if name not in oldest]
    assert names(got(caller)) == [*always, *new, *old, *sparc]
    assert names(got(caller, **{"A2A-Version": "1.0"})) == [*always, *new]
    assert names(got(caller, PATH + "?A2A-Version=0.3.0")) == [*always, *old]
    assert names(got(caller, PATH + "?a2a-version=0.2")) == [*always, *oldest, *sparc]


def test_each_path_of_the_endpoint_has_its_description_and_address(caller: httpx.Client, server: Server) -> None:
    whole = got(caller)
    socket = server.url.replace("http", "ws", 1)
    assert [each["url"] for each in whole["servers"]] == [f"{server.url}/jsonrpc", f"{socket}/ws"]
    for path in ("/jsonrpc", "/rpc"):
        assert got(caller, path + PATH) == whole
    addresses = [each["url"] for each in got(caller, "/agents/echo" + PATH)["servers"]]
    assert addresses == [f"{server.url}/agents/echo/jsonrpc", f"{socket}/agents/echo/ws"]


def test_an_unknown_version_or_agent_has_no_description(caller: httpx.Client) -> None:
    response = caller.get(PATH, headers={"A2A-Version": "7.1"})
    assert (response.status_code, response.json()["error"]["code"]) == (400, -32009)
    response = caller.get("/agents/nobody" + PATH)
    assert (response.status_code, response.json()["error"]["code"]) == (404, -38005)
    response = caller.post(PATH, content=b"{}")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


def test_the_description_needs_a_key_and_is_private(server: Server) -> None:
    with httpx.Client(base_url=server.url, timeout=PATIENCE, verify=NO_TLS) as client:
        response = client.get(PATH)
        assert (response.status_code, response.headers["www-authenticate"]) == (401, 'Bearer realm="taskdesk"')
        response = client.get(PATH, headers={"X-API-Key": server.owner})
        assert response.headers["cache-control"].startswith("private")
        assert {"Authorization", "A2A-Version"} <= set(response.headers["vary"].replace(",", "").split())


def test_a_client_that_has_the_description_gets_304(caller: httpx.Client) -> None:
    tags = {version: caller.get(PATH, headers={"A2A-Version": version}).headers["etag"] for version in ("1.0", "0.3")}
    assert len(set(tags.values())) == 2
    for version, tag in tags.items():
        for version_of_call in tags:
            headers = {"A2A-Version": version_of_call, "If-None-Match": tag}
            assert caller.get(PATH, headers=headers).status_code == (304 if version == version_of_call else 200)


def test_rpc_discover_is_answered_with_the_description(caller: httpx.Client) -> None:
    for version in ("1.0", "0.3", "0.2", None):
        headers = {"A2A-Version": version} if version else {}
        answer = caller.post("/jsonrpc", content=call("rpc.discover", {}), headers=headers).json()
        assert answer["result"] == got(caller, **headers)


def test_rpc_discover_in_a_batch_and_over_websocket(caller: httpx.Client, server: Server) -> None:
    both = f"[{call('rpc.discover', ...).decode()},{call('GetTask', {'id': 'x'}).decode()}]"
    described, missing = caller.post("/jsonrpc", content=both).json()
    assert (described["result"], missing["error"]["code"]) == (got(caller), -32001)

    async def over_websocket() -> Any:
        async with dialled(server.url, **bearer(server.owner)) as client:
            await client.send(call("rpc.discover", ...).decode())
            return await next_frame(client)

    assert asyncio.run(over_websocket())["result"] == got(caller)


def test_a_fault_of_the_call_is_told_in_words_of_all_versions(caller: httpx.Client) -> None:
    for wire, headers, code in (
        (call("rpc.nope", {}), {}, -32601),
        (call("rpc.discover", []), {}, -32602),
        (call("rpc.discover", {}), {"A2A-Version": "7.1"}, -32009),
    ):
        response = caller.post("/jsonrpc", content=wire, headers=headers)
        assert response.status_code == 200
        assert response.json()["error"].keys() == {"code", "message"}
        assert response.json()["error"]["code"] == code
    anonymous = httpx.post(f"{caller.base_url}/jsonrpc", json=json.loads(call("rpc.discover", {})), verify=NO_TLS)
    assert anonymous.status_code == 401


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
@pytest.mark.storage
def test_the_call_is_recorded_without_the_description(owner: Person) -> None:
    async def ask() -> None:
        headers = {"authorization": f"Bearer {owner.key}"}
        await AsyncClient().get(PATH, headers=headers)
        await AsyncClient().post("/jsonrpc", call("rpc.discover", {}), content_type="application/json", headers=headers)

    asyncio.run(ask())
    for exchange in recorded(2):
        assert (exchange.dialect, exchange.method, exchange.outcome) == ("openrpc", "rpc.discover", "result")
        assert exchange.response_bytes > 50_000
        assert len(exchange.body.response) < 100


def test_one_description_serves_all_addresses(caller: httpx.Client) -> None:
    """The server makes none before it is asked, and none for an address that a caller makes up."""
    pages._openrpc.cache_clear()
    from a2a.requests import Describe
    from tasks_app.operations.dispatcher import scope_of

    for address in ("https://one.example", "https://two.example"):
        pages.describe(Describe(endpoint="rpc", address=address), None, scope_of)
    assert (pages._openrpc.cache_info().misses, pages._openrpc.cache_info().hits) == (1, 1)
