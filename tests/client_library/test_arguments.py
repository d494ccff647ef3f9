"""Arguments of a wrong type or value, which the client refuses in one sentence before it sends anything."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from a2a.client import Client, SyncClient, Timeouts
from a2a.requests import SendMessage
from a2a.states import TaskState
from tests.client_library.faulty import FakeClock, faulty, result, rpc, task

PAGE = result({"tasks": [task()], "nextPageToken": ""})


def client(**options: Any) -> Client:
    return Client("http://127.0.0.1", **options)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: Timeouts(request="1"), "request of Timeouts must be a number of seconds, not str"),  # type: ignore[arg-type]
        (lambda: Timeouts(connect=None), "connect of Timeouts must be a number of seconds, not NoneType"),  # type: ignore[arg-type]
        (lambda: Timeouts(silence="1"), "silence of Timeouts must be a number of seconds, not str"),  # type: ignore[arg-type]
        (lambda: Timeouts(methods=600), "methods of Timeouts must be a dict such as {SendMessage: 600}, not int"),  # type: ignore[arg-type]
        (
            lambda: Timeouts(methods={SendMessage: "9"}),  # type: ignore[dict-item]
            "methods[SendMessage] of Timeouts must be a number of seconds, not str",
        ),
        (lambda: client(timeouts=3), "timeouts must be a Timeouts, such as Timeouts(request=60), not int"),
        (lambda: client(retries=3), "retries must be a Retries, such as Retries(times=5), not int"),
        (
            lambda: client(credentials="key"),
            "credentials must be an object such as ApiKey(key) or Bearer(token) of a2a.client, not str",
        ),
        (lambda: SyncClient("http://127.0.0.1", timeouts=3), "timeouts must be a Timeouts, such as "),
    ],
)
def test_an_argument_of_a_wrong_type_is_named_with_its_types(call: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(sentence)}"):
        call()


@pytest.mark.parametrize(
    ("filters", "kind", "sentence"),
    [
        (
            {"state": "complete"},
            ValueError,
            f"state must be a TaskState of a2a.states or its text ({', '.join(TaskState)}), not 'complete'",
        ),
        (
            {"since": "yesterday"},
            TypeError,
            "since must be a datetime of Python, such as datetime(2026, 3, 2, tzinfo=UTC), not str",
        ),
    ],
)
async def test_a_wrong_filter_of_tasks_is_refused_before_a_call(filters: Any, kind: Any, sentence: str) -> None:
    async with faulty(PAGE) as server, rpc(server, FakeClock()) as caller:
        with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
            await caller.list_tasks(**filters)
        with pytest.raises(kind, match=f"^{re.escape(sentence)}$"):
            await anext(caller.all_tasks(**filters))
    assert server.asked == []


@pytest.mark.parametrize("state", [TaskState.COMPLETED, "completed"], ids=["a value", "a text"])
async def test_tasks_are_filtered_by_a_state_or_its_text(state: Any) -> None:
    async with faulty(PAGE) as server, rpc(server, FakeClock()) as caller:
        await caller.list_tasks(state=state, since=datetime(2026, 3, 2, tzinfo=UTC))
    assert server.asked[0].wire["params"]["status"] == "TASK_STATE_COMPLETED"
    assert server.asked[0].wire["params"]["statusTimestampAfter"] == "2026-03-02T00:00:00.000Z"
