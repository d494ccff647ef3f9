"""A server for the tests of SPARC, with a key that is pinned to it and a token of an operator."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import Server, running_server

PINNED = "tdk_key-of-a-client-that-is-pinned-to-sparc"
_SCRIPT = f"""
import os
from pathlib import Path
from tasks_app.callers import access
from tasks_app.operators import tokens
from tasks_app.operators.audit import COMMAND, Operator
from tasks_app.operators.users import NamedReach, make_user
access.new_key("sparc", key="{PINNED}", language="sparc")
operator = Operator(name="ops", door=COMMAND)
user, _ = make_user(operator, "watcher", (), NamedReach(all_tenants=True))
Path(os.environ["DATA_DIR"], "token").write_text(tokens.make_token(user, "a test", 1, operator, administers=False)[1])
"""


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sparc")


@pytest.fixture(scope="package")
def server(folder: Path) -> Iterator[Server]:
    with running_server(folder, script=_SCRIPT, A2A_OUTBOUND_LOOPBACK="true") as server:
        yield server


@pytest.fixture
def operator_token(server: Server, folder: Path) -> str:
    return (folder / "token").read_text()
