"""Floods of access tokens that nobody has issued."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.support.servers import COMMAND_SECONDS

SCRIPT = """
import asyncio, json
from datetime import timedelta
import django
django.setup()
from oauth2_provider.models import AccessToken
from tasks_app import clock
from tasks_app.callers import access
from tasks_app.callers.access import MANY_MISSES
from tasks_app.exchanges.refusals import tally
from tasks_app.oauth import clients
from tasks_app.oauth.scheme import FindStoredTokens, FindTokenCaller
from tasks_app.oauth.secrets import ACCESS, checksum, make_access_token
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.transports.floods import refuse_early

address = "192.0.2.9"
body = b'{"jsonrpc":"2.0","id":"mine","method":"GetTask","params":{"id":"x"}}'
wish = clients.NewClient(name="robot", principal="robot", scopes="tasks:read")
client, _ = clients.add(wish, Operator("tests", COMMAND))
valid = make_access_token(None)
ends = clock.now() + timedelta(hours=1)
AccessToken.objects.create(token_checksum=checksum(valid), expires=ends, scope="tasks:read", application=client)
groups = []
find = FindStoredTokens.do_many
FindStoredTokens.do_many = lambda items: groups.append(sum(len(item.digests) for item in items)) or find(items)


def early(token):
    headers = [(b"authorization", b"Bearer " + token.encode()), (b"content-type", b"application/json")]
    place = {"method": "POST", "path": "/jsonrpc", "root_path": ""}
    return refuse_early({**place, "client": (address, 40_000), "headers": headers})


async def status(answer):
    whole = await answer
    return None if whole is None else whole[0]


async def main():
    before = [early(make_access_token(None)) is None]
    access.misses._turn = lambda: None
    unknown = [FindTokenCaller(checksum(make_access_token(None))) for _ in range(MANY_MISSES - 1)]
    await asyncio.to_thread(FindTokenCaller.do_many, [*unknown, FindTokenCaller(checksum(valid))])
    before.append(early(make_access_token(None)) is None)
    await asyncio.to_thread(FindTokenCaller.do_many, unknown[:1])
    while tally.count(address, 401):
        pass
    tokens = [make_access_token(None), valid, make_access_token(None), ACCESS + "short"]
    answers = [early(token)(body) for token in tokens]
    print(json.dumps([before, [await status(answer) for answer in answers], groups]))


asyncio.run(main())
"""


def test_unknown_access_tokens_of_a_flood_are_looked_up_together_and_refused_early(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DATABASE_URL", raising=False)
    for name, value in {
        "DATA_DIR": str(tmp_path),
        "DJANGO_SETTINGS_MODULE": "config.settings",
        "A2A_OAUTH": "true",
        "A2A_SCHEMES": "oauth,bearer",
    }.items():
        monkeypatch.setenv(name, value)
    for command in (["manage.py", "migrate", "--verbosity=0"], ["-c", SCRIPT]):
        done = subprocess.run(
            [sys.executable, *command], check=False, cwd=ROOT, capture_output=True, text=True, timeout=COMMAND_SECONDS
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout == "[[true, true], [401, null, 401, 401], [3]]\n", done.stderr
