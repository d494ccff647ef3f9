"""Which tests go to the same worker of pytest-xdist."""

import pytest

from tests.clients.environments import CLIENTS
from tests.support.workers import group

FILE = "tests/clients/test_clients.py"


@pytest.mark.parametrize("name", [client.name for client in CLIENTS])
def test_the_tests_of_a_client_go_to_one_worker(name: str) -> None:
    assert {group(f"{FILE}::test_a[{name}]"), group(f"{FILE}::test_b[bare-{name}]")} == {name}


def test_the_tests_of_the_clone_go_to_one_worker_and_others_to_any() -> None:
    install, fault = "tests/clients/test_install.py", "tests/faults/test_kill.py::test_a[python-1.3.0]"
    assert {group(f"{install}::test_a"), group(f"{install}::test_b")} == {install}
    assert group(fault) == fault
