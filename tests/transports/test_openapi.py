"""The description of all paths in OpenAPI: it is valid, complete and served; and the story is compared with it."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from django.urls.resolvers import RoutePattern
from openapi_spec_validator import validate
from openapi_spec_validator.validation.exceptions import OpenAPIValidationError

from a2a.languages import ALL
from tasks_app.urls import urlpatterns
from tests.conftest import NO_TLS, Person, Server
from tests.support.descriptions import Misdescribed, rest_description
from tests.support.doors import Events, Reply, StockDoor
from tests.support.rest_speakers import KindRestSpeaker, OldRestSpeaker, RestSpeaker
from tests.support.rpc_speakers import NewSpeaker, OldSpeaker
from tests.support.speaker import Speaker

PATH = "/openapi.json"


def test_the_description_is_valid_openapi() -> None:
    document = rest_description().document
    validate(document)
    path = document["paths"]["/tasks/{id}"]
    with pytest.raises(OpenAPIValidationError):
        validate(document | {"paths": {"/tasks/{id}": path | {"get": path["get"] | {"responses": 1}}}})


def test_every_route_is_described_with_its_params() -> None:
    paths = rest_description().document["paths"]
    for endpoint in ALL.endpoints.values():
        for prefix in endpoint.paths:
            for route in endpoint.routes:
                operation = paths[f"/{prefix}{route.path}" if prefix else route.path][route.verb.lower()]
                parameters = {each.get("name") for each in operation["parameters"]}
                assert {name for name in ("id", "taskId") if f"{{{name}}}" in route.path} <= parameters
                assert {"400", "401", "403", "404", "429", "503", "default"} <= operation["responses"].keys()
                assert ("requestBody" in operation) is (route.verb == "POST")
    pages = {each["name"] for each in paths["/tasks"]["get"]["parameters"] if "name" in each}
    assert {"pageSize", "pageToken", "status", "includeArtifacts"} <= pages
    assert paths["/v1/card"]["get"]["x-scope"] == "tasks:read"


def test_every_path_without_a_language_is_described() -> None:
    paths = rest_description().document["paths"]
    described = {re.sub(r"\{\w+\}", "{}", path).strip("/") for path in paths}
    routes = [str(each.pattern) for each in urlpatterns if isinstance(each.pattern, RoutePattern)]
    ours = {re.sub(r"<\w+:\w+>", "{}", route).strip("/") for route in routes if not route.startswith("agents/<")}
    elsewhere = {"", *(path for endpoint in ALL.endpoints.values() for path in endpoint.paths)}
    assert ours - elsewhere <= described
    assert {"openapi.json", "openrpc.json", "ws/ticket", "jsonrpc"} <= described


def test_paths_without_a_language_answer_as_described(server: Server) -> None:
    with httpx.Client(base_url=server.url, verify=NO_TLS) as client:
        for path, operations in rest_description().document["paths"].items():
            for verb, operation in operations.items():
                if "{" not in path and verb == "get":
                    status = client.get(path).status_code
                    assert (status == 401) is ("security" not in operation), path
                    assert str(status) in operation["responses"], path


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/.well-known/agent-card.json", None),
        ("/.well-known/agent-card.json", "1.0"),
        ("/.well-known/agent-card.json", "0.3"),
        ("/.well-known/agent.json", None),
        ("/agents/story/.well-known/agent-card.json", None),
    ],
)
def test_cards_are_as_described(server: Server, path: str, version: str | None) -> None:
    headers = {"A2A-Version": version} if version else {}
    card = httpx.get(server.url + path, headers=headers, verify=NO_TLS).json()
    plain = path.removeprefix("/agents/story")
    rest_description().check_answer("GET", plain, 200, "application/json", card)
    with pytest.raises(Misdescribed):
        rest_description().check_answer("GET", plain, 200, "application/json", card | {"surplus": 1})


def test_the_description_has_the_address_that_its_caller_used(caller: httpx.Client, server: Server) -> None:
    response = caller.get(PATH)
    assert response.status_code == 200
    assert response.json() == rest_description().document | {"servers": [{"url": server.url}]}
    assert caller.get(PATH, headers={"If-None-Match": response.headers["etag"]}).status_code == 304
    assert caller.get("/agents/echo" + PATH).json()["servers"] == [{"url": f"{server.url}/agents/echo"}]
    assert httpx.get(server.url + PATH, verify=NO_TLS).status_code == 401
    assert caller.post(PATH, content=b"").status_code == 405


# ------------------------------------------------------------------- the story


class SpoilingDoor(StockDoor):
    """A door whose answers, or events, have one member more."""

    @asynccontextmanager
    async def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> AsyncIterator[Reply]:
        async with super().ask(method, path, body, headers) as reply:
            if reply.headers["content-type"] == "text/event-stream":
                yield reply
            else:
                content = json.loads(b"".join([chunk async for chunk in reply.chunks]))
                yield reply._replace(chunks=self.spoiled(content))

    def events(self, reply: Reply) -> Events | None:
        events = super().events(reply)
        return None if events is None else self.spoiled_events(events)

    async def spoiled_events(self, events: Events) -> Events:
        async for seq, data in events:
            yield seq, json.dumps(spoiled(json.loads(data))).encode()

    async def spoiled(self, content: Any) -> AsyncIterator[bytes]:
        yield json.dumps(spoiled(content)).encode()


def spoiled(value: Any) -> Any:
    """Return an answer with a member more in its innermost first object."""
    for name in ("result", "error", "task", "status", "details", "data"):
        if isinstance(value, dict) and isinstance(value.get(name), dict | list) and value[name]:
            return value | {name: spoiled(value[name])}
    if isinstance(value, list):
        return [spoiled(value[0]), *value[1:]]
    return value | {"surplus": 1}


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("speaker", [NewSpeaker, OldSpeaker, RestSpeaker, OldRestSpeaker, KindRestSpeaker])
def test_the_story_finds_an_answer_that_is_not_as_described(owner: Person, speaker: type[Speaker]) -> None:
    me = speaker(door=SpoilingDoor(), key=owner.key)

    async def stream() -> None:
        async with me.stream("stream", me.sending("hello", agent="echo")) as frames:
            async for _ in frames:
                pass

    for wish in (me.send("hello", agent="echo"), me.get("missing"), stream()):
        with pytest.raises(Misdescribed, match="surplus"):
            asyncio.run(wish)
