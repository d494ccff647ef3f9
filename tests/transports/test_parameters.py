"""Values of requests that do not stand in their params."""

from types import SimpleNamespace
from typing import Any

import pytest

from a2a import languages
from a2a.batches import BatchInput, ExecuteBatch
from a2a.errors import InvalidParams
from a2a.requests import GetTask, Request, SendMessage, SendToSharedStream
from a2a.shared_streams import ChunkRole
from a2a.workflows import ExecuteWorkflow
from tasks_app.transports.parameters import complete
from tests.operations.asking import message


def completed(request: Request, **headers: str) -> Any:
    call: Any = SimpleNamespace(metadata=headers.get, batch=False, after=lambda: None)
    return complete(call, languages.ALL.by_name["sparc"], type(request), request)


@pytest.mark.parametrize(
    "request_",
    [
        ExecuteBatch(operation="echo", items=(BatchInput(task_id="t"),)),
        ExecuteWorkflow(workflow="w"),
        SendToSharedStream(stream_id="s", parts=(), role=ChunkRole.USER),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_budget_is_refused_where_several_tasks_may_begin(request_: Request) -> None:
    assert completed(request_) == request_
    with pytest.raises(InvalidParams) as refusal:
        completed(request_, **{"X-Budget-USD": "0.5"})
    assert refusal.value.violations[0][0] == "X-Budget-USD"


def test_a_budget_limits_the_task_of_a_message_and_is_not_looked_at_elsewhere() -> None:
    assert completed(SendMessage(message=message()), **{"X-Budget-USD": "0.5"}).budget == 500_000
    assert completed(GetTask(id="t"), **{"X-Budget-USD": "x"}) == GetTask(id="t")
