"""The second factor of an operator in Chromium: enrolment, a wrong code, the right one, and a code used again."""

import asyncio
import os
import subprocess
from contextlib import ExitStack
from pathlib import Path

import orjson
import pytest

from tests.browser.chromium import SECONDS, chromium
from tests.clients.environments import playwright
from tests.faults.nodes import Node

pytestmark = [pytest.mark.browser, pytest.mark.slow]
DRIVER = Path(__file__).with_name("second_factor.py")
FACTOR, TASKS = "/admin/second-factor/", "/admin/tasks_app/task/"
RECOVERY_CODES = 10


async def test_an_operator_enrols_and_logs_in_with_each_code_once(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    assert pytestconfig.cache
    python = playwright(pytestconfig.cache.mkdir("clients"))
    with ExitStack() as stack:
        node = Node(tmp_path / "data", A2A_SECOND_FACTOR="true")
        stack.callback(node.kill)
        await node.start()
        password = (tmp_path / "data" / "admin.password").read_text().strip()
        done = await asyncio.to_thread(
            subprocess.run,
            [python, "-I", DRIVER, node.base, password],
            env=os.environ | {"CHROMIUM": chromium(python)},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    lines = [orjson.loads(line) for line in done.stdout.splitlines()]
    assert lines.pop() == {"step": "errors", "errors": []}
    assert [line["step"] for line in lines if line["look"] != {"violations": [], "wide": 0}] == []
    places = {line["step"]: (line["path"], line["picture"]) for line in lines}
    assert places == {
        "enrolment": (FACTOR, True),
        "wrong code": (FACTOR, True),
        "another page": (FACTOR, True),
        "right code": (FACTOR, False),
        "enrolled": (TASKS, False),
        "second login": (FACTOR, False),
        "code of the enrolment again": (FACTOR, False),
        "next code": (TASKS, False),
        "next code again": (FACTOR, False),
        "page of the thief": (FACTOR, False),
        "recovery code": ("/admin/", False),
    }
    refused = [line["step"] for line in lines if "not right" in line["error"]]
    assert refused == ["wrong code", "code of the enrolment again", "next code again"]
    (codes,) = (line["codes"] for line in lines if "codes" in line)
    assert codes == RECOVERY_CODES
