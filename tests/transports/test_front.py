"""The page at /: a browser sees what runs here, a program gets what it gets at every other door."""

import json
import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from django.test import RequestFactory
from msgspec.structs import replace

from a2a.agents import registry
from a2a.types import Skill
from tasks_app.exchanges.recording import recorder
from tasks_app.management.commands.run import READY
from tasks_app.transports import front
from tests.conftest import Server, until
from tests.transports.calls import send

BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"


@pytest.fixture(autouse=True)
def _anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Forget the pages: settings and agents change in tests. What is asked in this process leaves no record, for that
    would be written later, into the database of another test."""
    monkeypatch.setattr(recorder, "close", lambda exchange: None)
    front.page.cache_clear()
    yield
    front.page.cache_clear()


def recorded_calls(server: Server) -> int:
    """Return the number of calls on record, once that of this very call is there: they are written in their order."""
    key = {"Authorization": f"Bearer {server.owner}"}
    wrong = {"jsonrpc": "2.0", "id": 1, "method": "NoSuchMethod"}
    mine = httpx.post(f"{server.url}/jsonrpc", json=wrong, headers=key).headers["X-Request-ID"]
    count = "select count(*) from tasks_app_exchange"
    until(lambda: server.rows(f"{count} where '{mine}' in (id, request_id)") == [(1,)], "the call is recorded")
    return int(server.rows(count)[0][0])


async def got(accept: str | None = BROWSER, peer: str = "127.0.0.1", host: str = "testserver") -> Any:
    headers = {"Host": host} | ({"Accept": accept} if accept is not None else {})
    return await front.front(RequestFactory().get("/", headers=headers, REMOTE_ADDR=peer))


@pytest.mark.storage
@pytest.mark.usefixtures("unchanged")
def test_a_browser_sees_the_agents_and_leaves_no_record(server: Server) -> None:
    before = recorded_calls(server)
    response = httpx.get(server.url, headers={"Accept": BROWSER})
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "default-src 'self'" in response.headers["content-security-policy"]
    assert "Accept" in response.headers["vary"]
    # Other tests have agents of their own in this process, which the server's does not know.
    modules = {"tasks_app.agents.examples", "tests.support.agents"}
    shared = [agent for agent in registry if agent.function.__module__ in modules]
    assert len({agent.listed for agent in shared}) == 2
    for agent in shared:
        assert (f'<h3 id="agent-{agent.name}">' in response.text) == agent.listed, agent.name
    assert f"<code>{server.url}/agents/echo/</code>" in response.text
    assert f"curl -N {server.url}/agents/echo/jsonrpc" in response.text
    assert "the variable <code>KEY</code>" in response.text
    assert server.owner not in response.text
    assert recorded_calls(server) == before + 1, "the call that asks for the number, and not the page"
    head = httpx.head(server.url, headers={"Accept": BROWSER})
    assert (head.status_code, head.content) == (200, b"")
    for link in set(re.findall(r'(?:href|src)="(/[^"#]*)"', response.text)):
        assert httpx.get(server.url + link, follow_redirects=True).status_code in {200, 503}, link


@pytest.mark.parametrize("accept", [None, "*/*", "application/json", "application/json, text/html;q=0.5"])
@pytest.mark.django_db
async def test_a_program_gets_json_as_before(accept: str | None) -> None:
    response = await got(accept)
    assert (response.status_code, json.loads(response.content)["error"]["code"]) == (405, -32600)


def test_calls_at_the_root_are_answered_whatever_they_accept(caller: httpx.Client) -> None:
    response = caller.post("/", content=send(), headers={"Accept": BROWSER})
    assert "result" in response.json()


async def test_the_page_names_every_version_of_a2a() -> None:
    assert b"<p>A2A 1.0, 0.3, 0.2 agents at" in (await got()).content


async def test_the_box_is_for_this_machine_on_a_development_server_only(settings: Any) -> None:
    settings.DEVELOPMENT = True
    assert b'id="box"' in (await got()).content
    assert b'id="box"' in (await got(peer="::1")).content
    assert b'id="box"' not in (await got(peer="192.0.2.7")).content
    settings.DEVELOPMENT = False
    production = (await got()).content
    assert b'id="box"' not in production
    assert b"<script" not in production


async def test_a_name_that_is_not_ours_gets_no_page(settings: Any) -> None:
    response = await got(host="evil.example")
    assert (response.status_code, response["Content-Type"]) == (400, "text/plain; charset=utf-8")


@pytest.mark.django_db
async def test_the_page_can_be_switched_off(settings: Any) -> None:
    settings.A2A_FRONT_PAGE = False
    assert (await got()).status_code == 405


async def test_the_words_of_authors_are_text_and_hidden_skills_stay_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    echo = registry.get("echo")
    assert echo
    shown = Skill(id="a", name="<i>a</i>", description="d", tags=("t",), examples=("<script>x</script>",))
    hidden = Skill(id="b", name="only for some", description="d", tags=("t",), listed=False)
    hostile = replace(echo, description='<img src=x onerror="y">', skills=(shown, hidden))
    monkeypatch.setitem(registry._agents, "echo", hostile)
    text = (await got()).content.decode()
    assert "&lt;img src=x onerror=" in text
    assert "<script>x" not in text
    assert "only for some" not in text


def test_the_key_is_behind_the_hash_of_the_printed_address() -> None:
    assert "{base}/#key={key} " in READY
