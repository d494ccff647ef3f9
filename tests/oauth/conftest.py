"""A real server with the OAuth server switched on, its clients, and an operator who approves them."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

with warnings.catch_warnings():
    from authlib.deprecate import AuthlibDeprecationWarning

    # It prefers a successor of httpx, which this project does not use yet.
    warnings.simplefilter("ignore", AuthlibDeprecationWarning)
    from authlib.integrations.httpx_client import OAuth2Client

from tests.conftest import ROOT, Server, running_server
from tests.oauth.browser import Browser
from tests.support.servers import COMMAND_SECONDS, NO_TLS

REDIRECT = "https://app.example/callback?tab=1"
LOOPBACK = "http://127.0.0.1/callback"
SCOPES = "tasks:read tasks:write"
_SCRIPT = """
import json, pathlib
from django.contrib.auth.models import User
from tasks_app import clock
from tasks_app.models import Principal, RateLimit
from tasks_app.oauth import clients
from tasks_app.operators import users
from tasks_app.operators.audit import COMMAND, Operator

User.objects.create_superuser("ada", password="{password}")
User.objects.create_user("vera", password="{password}", is_staff=True)
reach = users.NamedReach(tenants=["default"])
code = dict(grant="authorization-code", redirect_uris=["{redirect}"])
wishes = {{
    "robot": dict(principal="robot"),
    "reader": dict(principal="robot", scopes="tasks:read"),
    "foreigner": dict(principal="robot", tenant="abroad"),
    "app": dict(principal="olga", **code),
    "rival": dict(principal="rival", **code),
    "distant": dict(principal="olga", tenant="abroad", **code),
    "busy": dict(principal="busy"),
    "hasty": dict(principal="hasty", grant="authorization-code", redirect_uris=["{redirect}"], public=True),
    "native": dict(principal="olga", grant="authorization-code", redirect_uris=["{loopback}"], public=True),
}}
programs = {{}}
for name, wish in wishes.items():
    wish = clients.NewClient(**{{"name": name, "scopes": "{scopes}"}} | wish)
    client, secret = clients.add(wish, Operator("tests", COMMAND))
    programs[name] = {{"pk": client.pk, "id": client.client_id, "secret": secret}}
for principal in Principal.objects.filter(name__in=["busy", "hasty"]):
    RateLimit.objects.create(
        principal=principal, tenant=principal.tenant, per_minute=1, burst=25, changed_at=clock.now()
    )
lisa, _ = users.make_user(Operator("tests", COMMAND), "lisa", ["administrator"], reach)
lisa.set_password("{password}")
lisa.save()
pathlib.Path("{file}").write_text(json.dumps(programs))
"""
PASSWORD = "a long password of ada"
get, post = partial(httpx.get, timeout=30, verify=NO_TLS), partial(httpx.post, timeout=30, verify=NO_TLS)


class Program(NamedTuple):
    """A client of the OAuth server."""

    pk: int
    id: str
    secret: str


class Site(NamedTuple):
    """The server, its OAuth clients, and the environment of its commands."""

    server: Server
    programs: dict[str, Program]
    environment: dict[str, str]

    @property
    def url(self) -> str:
        return self.server.url

    def client(self, name: str, **more: Any) -> OAuth2Client:
        """Return the client library as one of the clients."""
        program = self.programs[name]
        more = {"scope": SCOPES} | more
        method = "client_secret_basic" if program.secret else "none"
        return OAuth2Client(
            program.id, program.secret or None, token_endpoint_auth_method=method, timeout=30, verify=NO_TLS, **more
        )

    def form(self, name: str, path: str, **fields: str) -> httpx.Response:
        """Send a form to an endpoint as one of the clients."""
        program = self.programs[name]
        if program.secret:
            return post(f"{self.url}{path}", data=fields, auth=(program.id, program.secret))
        return post(f"{self.url}{path}", data=fields | {"client_id": program.id})

    def add(self, name: str, line: dict[str, Any]) -> None:
        """Use a client by the line that a command printed about it."""
        self.programs[name] = Program(line["id"], line["client_id"], line["client_secret"])

    def call(self, token: str) -> int:
        """Make a call with the token, and return the status of its answer."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "ListTasks", "params": {}}
        headers = {"Authorization": f"Bearer {token}", "A2A-Version": "1.0"}
        return post(f"{self.url}/jsonrpc", json=body, headers=headers).status_code

    def command(self, *arguments: str, noun: str = "clients") -> dict[str, Any]:
        """Run a command of operators, and return the line that it prints."""
        return dict(json.loads(self._run("manage.py", "a2a", noun, *arguments)))

    def script(self, text: str) -> str:
        """Run a Python script with the settings of the server, and return what it prints."""
        return self._run("-c", text)

    def _run(self, *arguments: str) -> str:
        database = self.server.database
        place = {"DATA_DIR": str(self.server.log.parent)} | ({"DATABASE_URL": database} if "://" in database else {})
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        command = [sys.executable, *arguments]
        environment |= place | self.environment | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        done = subprocess.run(
            command, cwd=ROOT, env=environment, check=True, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        return done.stdout

    def token(self, name: str = "robot", **more: str) -> dict[str, Any]:
        """Return a new token by client credentials."""
        with self.client(name, scope=None) as client:
            return dict(client.fetch_token(f"{self.url}/oauth2/token", grant_type="client_credentials", **more))


@contextmanager
def serving(folder: Path, **limits: str) -> Iterator[Site]:
    """Yield a server with the clients, without limits by address except those that are given."""
    file = folder / "clients.json"
    script = _SCRIPT.format(password=PASSWORD, redirect=REDIRECT, loopback=LOOPBACK, scopes=SCOPES, file=file)
    more = {"A2A_OAUTH": "true", "A2A_ADDRESS_FAILURES": "0", "A2A_LOGIN_TRIES": "1000"} | limits
    with running_server(folder, script=script, **more) as server:
        programs = {name: Program(**values) for name, values in json.loads(file.read_text()).items()}
        yield Site(server, programs, more)


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with serving(tmp_path_factory.mktemp("oauth")) as site:
        yield site


@pytest.fixture(scope="session")
def browser(site: Site) -> Iterator[Browser]:
    """Return a browser in which the operator stays logged in after the first page."""
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        yield Browser(client, PASSWORD)


@pytest.fixture
def fresh_browser(site: Site) -> Iterator[Browser]:
    """Return a browser in which nobody is logged in."""
    with httpx.Client(base_url=site.url, timeout=30, verify=NO_TLS) as client:
        yield Browser(client, PASSWORD)
