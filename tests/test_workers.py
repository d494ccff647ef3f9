"""Which tests go to the same worker of pytest-xdist."""

from types import SimpleNamespace
from typing import Any

import pytest

from tests.clients.environments import CLIENTS
from tests.support.workers import SERVERS, group, server_of

FILE = "tests/clients/test_clients.py"


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_the_tests_of_a_client_go_to_one_worker(name: str) -> None:
    assert {group(f"{FILE}::test_a[{name}]"), group(f"{FILE}::test_b[bare-{name}]")} == {name}


def test_the_tests_of_the_clone_go_to_one_worker_and_others_to_any() -> None:
    install, fault = "tests/clients/test_install.py", "tests/faults/test_kill.py::test_a[python-1.3.0]"
    assert {group(f"{install}::test_a"), group(f"{install}::test_b")} == {install}
    assert group(fault) == fault


def test_tests_that_need_one_server_have_one_place_in_the_order_and_others_come_behind_them(
    request: pytest.FixtureRequest,
) -> None:
    items: list[Any] = [SimpleNamespace(fixturenames=["db", name]) for name in SERVERS]
    assert [server_of(item) for item in items] == list(range(len(SERVERS)))
    assert server_of(request.node) == len(SERVERS)
