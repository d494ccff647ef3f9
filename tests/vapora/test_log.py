"""The structured log of errors: one record for each, with fields, and without secrets."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from a2a import Message, Run, agent
from a2a.errors import Internal
from tasks_app.log_fields import FIELDS, JsonLine, error_fields
from tasks_app.operations import tasks
from tests.conftest import Person
from tests.support.doors import StockDoor
from tests.support.vapora_speaker import VaporaSpeaker

pytestmark = pytest.mark.requirement("VAPORA-06")
SECRET = "tdk_a-secret-that-nobody-may-read-anywhere"


class Records(logging.Handler):
    """The records that have fields of an error."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[dict[str, Any]] = []
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "operation"):
            self.found.append({name: getattr(record, name) for name in FIELDS} | {"level": record.levelname})
            self.lines.append(JsonLine().format(record))


@pytest.fixture
def records() -> Iterator[Records]:
    handler, root = Records(), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.INFO)
    yield handler
    root.removeHandler(handler)
    root.setLevel(level)


def speaker(person: Person) -> VaporaSpeaker:
    return VaporaSpeaker(door=StockDoor(), key=person.key)


async def refused(me: VaporaSpeaker, wish: str, params: Any, **headers: str) -> int:
    status, answer = await me.post(me.call(wish, params), **headers)
    assert "error" in answer
    return status


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_an_error_of_a_call_is_one_record_with_its_task_and_its_caller(owner: Person, records: Records) -> None:
    await refused(speaker(owner), "get", {"id": "0197-missing"})
    (found,) = records.found
    assert found.pop("exchange")
    assert found == {
        "level": "INFO",
        "operation": "tasks/get",
        "task_id": "0197-missing",
        "detail": "Task not found",
        "caller": "home/owner",
        "reference": "",
        "reason": "TASK_NOT_FOUND",
    }


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_fault_is_one_record_with_its_reference(
    owner: Person, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        raise OSError(f"the disk is full, password={SECRET}")

    monkeypatch.setattr(tasks, "read_whole", broken)
    status = await refused(speaker(owner), "get", {"id": "t"})
    (found,) = records.found
    assert (status, found["level"], found["operation"]) == (500, "ERROR", "tasks/get")
    assert found["reference"] == found["exchange"] != ""
    assert found["detail"].startswith("OSError: the disk is full")
    assert SECRET not in str(records.found) + str(records.lines)
    assert json.loads(records.lines[0])["traceback"].startswith("Traceback")


def in_doubt(message: Message) -> bool:
    """Whether the agent is quick, if it could tell."""
    raise ValueError(message.parts[0].text)


@agent(quick=in_doubt)
async def never_decided(run: Run) -> str:
    """Never answers, because its `quick=` fails."""
    return "?"


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_function_of_quick_that_fails_is_named_in_the_line_of_the_fault(
    owner: Person, caplog: pytest.LogCaptureFixture
) -> None:
    """The text of a caller in the line is masked, and looks like no other line."""
    said = f"the city\n{SECRET} of 2026-01-01 00:00:00,000 ERROR"
    text = {"messageId": "m", "role": "user", "parts": [{"kind": "text", "text": said}]}
    status = await refused(speaker(owner), "send", {"message": text, "metadata": {"agent": "never-decided"}})
    (line,) = [record.getMessage() for record in caplog.records if record.name == "tasks_app.transports.faults"]
    assert status == 500
    place = f"{__file__}:{in_doubt.__code__.co_firstlineno + 2}"
    assert f'failed: {place}: agent "never-decided": the function of quick= raised ValueError: the city [' in line
    assert "\n" not in line
    assert SECRET not in line


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_a_stranger_is_logged_without_a_caller_and_without_the_key(owner: Person, records: Records) -> None:
    assert await refused(speaker(owner), "get", {"id": "t"}, Authorization=f"Bearer {SECRET}") == 401
    (found,) = records.found
    assert (found["reason"], found["caller"]) == ("UNAUTHENTICATED", "")
    assert SECRET not in str(records.found) + str(records.lines)


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
async def test_members_of_a_batch_and_notifications_have_a_record_each(owner: Person, records: Records) -> None:
    me = speaker(owner)
    silent = me.call("get", {"id": "b"})
    del silent["id"]
    await me.post([me.call("get", {"id": "a"}), silent, me.call("nope", {})])
    assert sorted((each["reason"], each["task_id"]) for each in records.found if each["task_id"]) == [
        ("TASK_NOT_FOUND", "a"),
        ("TASK_NOT_FOUND", "b"),
    ]
    assert [each["operation"] for each in records.found if not each["task_id"]] == ["nope"]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("name", ["raises", "quick-raises", "sleeper"])
def test_a_failed_run_is_one_record_with_its_task(owner: Person, records: Records, name: str) -> None:
    task = asyncio.run(speaker(owner).send("hello", agent=name))
    assert task["status"]["state"] == "failed"
    (found,) = records.found
    assert (found["operation"], found["task_id"], found["reason"]) == (f"run {name}", task["id"], "RUN_FAILED")
    assert found["detail"]


def test_the_names_of_the_fields_stay() -> None:
    """The names of the fields are an interface to programs that collect logs."""
    assert FIELDS == ("operation", "task_id", "detail", "caller", "exchange", "reference", "reason")


def test_a_line_in_json_has_the_fields_and_no_secret() -> None:
    record = logging.LogRecord("x", logging.ERROR, __file__, 1, "failed with %s", (SECRET,), None)
    vars(record).update(error_fields("tasks/get", f"token={SECRET} \ud800", task_id=SECRET, reason=Internal.reason))
    line = JsonLine().format(record)
    wire = json.loads(line)
    assert SECRET not in line
    assert (wire["level"], wire["logger"], wire["operation"], wire["reason"]) == (
        "ERROR",
        "x",
        "tasks/get",
        "INTERNAL_ERROR",
    )
    assert "\n" not in line
    assert not {"caller", "exchange", "reference"} & wire.keys()
