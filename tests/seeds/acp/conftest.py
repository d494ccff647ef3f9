"""A running server with the OAuth server, and agents that are its clients."""

import json
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from tests.conftest import Server, running_server
from tests.seeds.acp.client import AcpClient

SCOPES = (
    *("acp:agent:identify", "acp:tasks:read", "acp:tasks:write", "acp:tasks:cancel"),
    *("acp:streams:read", "acp:streams:write", "acp:notifications:receive"),
)
AGENTS = {
    "agent-analysis-001": SCOPES,
    "agent-partner-002": SCOPES,
    "agent-outsider": SCOPES,
    "agent-listener": ("acp:agent:identify", "acp:streams:read"),
    "agent-reader": ("acp:agent:identify", "acp:tasks:read"),
    "agent-writer": ("acp:agent:identify", "acp:tasks:read", "acp:tasks:write"),
    "agent-nameless": ("acp:tasks:read",),
}
"""The agents that call, with their scopes. All but `agent-nameless` can be identified."""
_SCRIPT = """
import json, pathlib
from tasks_app.oauth import clients
from tasks_app.operators.audit import COMMAND, Operator

programs = {{}}
for name, scopes in {agents!r}.items():
    wish = clients.NewClient(name=name, principal=name, scopes=" ".join(scopes))
    client, secret = clients.add(wish, Operator("tests", COMMAND))
    programs[name] = [client.client_id, secret]
pathlib.Path("{file}").write_text(json.dumps(programs))
"""


class World(NamedTuple):
    """The server, and the agents that call it."""

    server: Server
    agents: dict[str, AcpClient]

    def expire_tokens(self) -> None:
        """Let all tokens end now."""
        now = "now()" if "://" in self.server.database else "datetime('now')"
        self.server.execute(f"update oauth2_provider_accesstoken set expires = {now}")  # noqa: S608


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("acp")
    file = folder / "clients.json"
    more = {"A2A_OAUTH": "true", "A2A_ADDRESS_FAILURES": "0", "A2A_OAUTH_TOKEN_SECONDS": "3600"}
    with running_server(folder, script=_SCRIPT.format(agents=AGENTS, file=file), **more) as server:
        programs = json.loads(file.read_text())
        with ExitStack() as stack:
            agents = {name: AcpClient(server.url, *programs[name], scopes) for name, scopes in AGENTS.items()}
            for agent in agents.values():
                stack.enter_context(agent.http)
            yield World(server, agents)


@pytest.fixture
def agent(world: World) -> AcpClient:
    """Return the agent with all scopes."""
    return world.agents["agent-analysis-001"]
