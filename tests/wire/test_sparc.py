"""The wire of SPARC, as recorded in sparc.json: calls decode to these values, and results, the bytes of events, errors
and bodies of webhooks encode to what is there.

To see what SPARC looks like here, read that file; to change it on purpose, change the file. The methods that it shares
with A2A 0.2 are in v0_2.json.
"""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import replace

from a2a import errors
from a2a.answers import Frame, Result
from a2a.batches import BatchInput, ExecuteBatch
from a2a.client.languages.sparc import LANGUAGE as CLIENT
from a2a.dialects import v0_2
from a2a.dialects.sparc.language import DIALECT
from a2a.dialects.sparc.streams import named_frame
from a2a.envelopes import Member, jsonrpc
from a2a.errors import Error
from a2a.memory import (
    DeleteMemory,
    ListMemory,
    MemoryDeletion,
    MemoryDocument,
    MemoryPage,
    RetrieveMemory,
    SearchMemory,
    StoreMemory,
)
from a2a.requests import CreatePushConfig, Priority, Request
from a2a.states import TaskState
from a2a.types import Message, Part, PushConfig, Role
from a2a.workflows import (
    PHASES,
    CapabilitiesDocument,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    Phase,
    PhaseDocument,
    PhaseState,
    PhaseTaskDocument,
    SendInPhase,
    SetPhase,
    StreamInPhase,
    WorkflowDocument,
    WorkflowState,
)
from tests.wire import values
from tests.wire.values import FIRST, TASK, at

GOLDEN = json.loads(Path(__file__).with_name("sparc.json").read_text(encoding="utf-8"))
SHOP = "sparc-workflow-001"
ASKED = Message(message_id=FIRST, role=Role.USER, parts=(Part(text="Specify a shop."),))
SENT = SendInPhase(message=ASKED)
FULL = replace(
    SENT,
    phase=Phase.SPECIFICATION,
    workflow=SHOP,
    priority=Priority.HIGH,
    metadata={"sparcPhase": "specification", "workflowId": SHOP, "priority": "high"},
    accepted_output_modes=("text/plain",),
    history_length=2,
    return_immediately=True,
)
STORED = StoreMemory(namespace="sparc", key="design", data={"phase": "specification"})
HOOK = PushConfig(url="https://client.example.com/hooks", id="push-cfg-1", token="tok-9f2c")
SEARCH = SearchMemory(namespace="sparc", field="phase", value="specification", page_size=5, page_token="cursor")
REQUESTS: dict[str, Request] = {
    "message/send": SENT,
    "message/send.phase": FULL,
    "message/stream": StreamInPhase(message=ASKED, phase=Phase.PSEUDOCODE, metadata={"sparcPhase": "pseudocode"}),
    "tasks/submit": replace(SENT, return_immediately=True, queued=True),
    "tasks/pushNotificationConfig/set": CreatePushConfig(task_id=TASK, config=replace(HOOK, path="config.url")),
    "tasks/pushNotificationConfig/set.beside": CreatePushConfig(task_id=TASK, config=replace(HOOK, id=None)),
    "sparc/phase/set": SetPhase(workflow=SHOP, phase=Phase.SPECIFICATION),
    "sparc/phase/set.full": SetPhase(
        workflow=SHOP, phase=Phase.PSEUDOCODE, agent_types=("coder", "reviewer"), configuration={"depth": 2}
    ),
    "sparc/execute": ExecuteWorkflow(workflow=SHOP, message=ASKED),
    "sparc/execute.phase": ExecuteWorkflow(workflow=SHOP, phase=Phase.REFINEMENT, agent_types=()),
    "sparc/workflow/get": GetWorkflow(workflow=SHOP),
    "agent/capabilities": GetCapabilities(),
    "batchtools/execute": ExecuteBatch(
        operation="parallel_analysis",
        items=(BatchInput(task_id="task-001"), BatchInput(message=ASKED)),
        max_concurrent=5,
        batch_size=10,
        optimization="resources",
        metadata={"requester": "a"},
    ),
    "memory/store": STORED,
    "memory/store.conditions": replace(STORED, ttl=3600, if_version=2),
    "memory/store.null": replace(STORED, data=None),
    "memory/retrieve": RetrieveMemory(namespace="sparc", key="design"),
    "memory/list": ListMemory(),
    "memory/list.page": ListMemory(namespace="sparc", prefix="d", page_size=2, page_token="cursor"),
    "memory/search": SearchMemory(namespace="sparc", text="phase"),
    "memory/search.field": SEARCH,
    "memory/delete": DeleteMemory(namespace="sparc", key="design"),
    "memory/delete.version": DeleteMemory(namespace="sparc", key="design", if_version=3),
}
ONE_WAY = {"tasks/submit", "tasks/pushNotificationConfig/set.beside"}
"""Requests that our client sends in another form: as message/send, and in the member `config`."""

RESULT = orjson.dumps(
    [{"artifactId": "a", "name": "summary", "parts": [{"text": "Done."}, {"data": {"total": 42}}]}]
).decode()
WORK = PhaseTaskDocument(task_id=TASK, agent="specifier", state=TaskState.COMPLETED, created_at=at(1), ended_at=at(5))
BEGUN = WorkflowDocument(
    name=SHOP,
    state=WorkflowState.ACTIVE,
    phase=Phase.SPECIFICATION,
    phases=tuple(PhaseDocument(phase=phase, state=PhaseState.PENDING) for phase in PHASES),
    created_at=at(0),
    updated_at=at(0),
)
WORKFLOW = replace(
    BEGUN,
    phase=Phase.PSEUDOCODE,
    phases=(
        PhaseDocument(
            phase=Phase.SPECIFICATION,
            state=PhaseState.COMPLETED,
            tasks=(WORK,),
            artifacts=RESULT,
            result_task_id=TASK,
        ),
        PhaseDocument(
            phase=Phase.PSEUDOCODE,
            state=PhaseState.FAILED,
            tasks=(
                replace(WORK, task_id="t2", state=TaskState.FAILED),
                replace(WORK, task_id="t3", state=TaskState.WORKING, ended_at=None),
            ),
        ),
        *BEGUN.phases[2:],
    ),
    updated_at=at(5),
    agent_types=("coder",),
    configuration={"depth": 2},
    runs_until=Phase.COMPLETION,
    reason="the task failed",
)
ENTRY = MemoryDocument(namespace="sparc", key="design", version=3, created_at=at(0), updated_at=at(1), size=25)
WHOLE = replace(ENTRY, expires_at=at(59), data={"phase": "specification"})
RESULTS: dict[str, tuple[str, Result]] = {
    "message/send": ("message/send", values.COMPLETED),
    "message/send.message": ("message/send", values.REPLIED),
    "tasks/submit": ("tasks/submit", values.WORKING),
    "tasks/pushNotificationConfig/set": ("tasks/pushNotificationConfig/set", values.WRITTEN_WEBHOOK),
    "sparc/phase/set": ("sparc/phase/set", BEGUN),
    "sparc/workflow/get": ("sparc/workflow/get", WORKFLOW),
    "sparc/execute": ("sparc/execute", replace(BEGUN, runs_until=Phase.SPECIFICATION)),
    "agent/capabilities": (
        "agent/capabilities",
        CapabilitiesDocument(
            name="invoices",
            version="2.4.1",
            skills=("summarise",),
            phases=(Phase.SPECIFICATION,),
            input_modes=("text/plain",),
            output_modes=("text/plain", "application/json"),
            streaming=True,
            push_notifications=False,
            task_seconds=600.0,
        ),
    ),
    "batchtools/execute": ("batchtools/execute", values.WORKING),
    "memory/store": ("memory/store", ENTRY),
    "memory/retrieve": ("memory/retrieve", WHOLE),
    "memory/retrieve.null": ("memory/retrieve", replace(ENTRY, data=None)),
    "memory/list": ("memory/list", MemoryPage(entries=(ENTRY,), next_page_token="cursor")),
    "memory/search": ("memory/search", MemoryPage(entries=(WHOLE,), next_page_token="")),
    "memory/delete": ("memory/delete", MemoryDeletion(namespace="sparc", key="design")),
}
EVENTS: dict[str, tuple[Frame, ...]] = {
    "completed": values.STREAM_COMPLETED,
    "input-required": values.STREAM_INPUT_REQUIRED,
    "message": values.STREAM_MESSAGE,
    "resumed": values.STREAM_RESUMED,
}
FACTS: dict[type[Error], dict[str, str]] = {
    errors.TaskNotFound: {"taskId": TASK},
    errors.TaskEnded: {"taskId": TASK, "detail": "the task has ended: it is completed"},
    errors.PhaseRefused: {
        "currentPhase": "specification",
        "requestedPhase": "completion",
        "detail": "Cannot skip intermediate phases",
    },
    errors.BudgetExceeded: {"required": "0.50", "available": "0.25", "budget": "call"},
    errors.Internal: {"reference": "018f2c7e-2222-7000-8000-000000000002"},
    errors.MissingScope: {"required": "tasks:write", "provided": "tasks:read"},
}
MISSING = errors.InvalidParams(("message", "is required"))


def error_of(kind: type[Error]) -> Error:
    if kind is errors.InvalidParams:
        return errors.InvalidParams(("message.parts", "must not be empty"))
    return kind(**FACTS.get(kind, {}))


def failure(error: Error) -> dict[str, Any]:
    """Return the HTTP status and the answer of a failure."""
    told = DIALECT.words(error)
    payload = jsonrpc.failure("req-001", told, DIALECT).payload
    answer = json.loads(payload) if isinstance(payload, bytes) else payload
    return {"status": DIALECT.column[told.row].status, "answer": answer}


def event(frame: Frame) -> str:
    """Return an event of a stream as it is sent, name and all."""
    body = DIALECT.encode_frame(frame, None)
    assert body is not None
    data = jsonrpc.ENVELOPE.reply("req-002", body)
    assert data is not None
    return named_frame(data, getattr(frame, "seq", None)).decode()


def recording() -> dict[str, Any]:
    """Return all that is sent now."""
    recorded = {
        "results": {
            name: json.loads(DIALECT.methods[method].encode(value)) for name, (method, value) in RESULTS.items()
        },
        "events": {name: [event(frame) for frame in frames] for name, frames in EVENTS.items()},
        "errors": {kind.__name__: failure(error_of(kind)) for kind in errors.ALL} | {"missing": failure(MISSING)},
    }
    plain: dict[str, Any] = json.loads(orjson.dumps(recorded))
    return plain


@pytest.mark.requirement("SPARC-01", "SPARC-02")
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_decodes_to_its_value(name: str) -> None:
    member = jsonrpc.parse(json.dumps(GOLDEN["requests"][name]).encode())
    assert isinstance(member, Member)
    assert member.method == name.partition(".")[0]
    assert DIALECT.methods[member.method].decode(member.params) == REQUESTS[name]


@pytest.mark.parametrize("name", [name for name in REQUESTS if name not in ONE_WAY])
def test_our_client_sends_the_request(name: str) -> None:
    operation, wire = CLIENT.operation(REQUESTS[name]), GOLDEN["requests"][name]
    assert operation.method == wire["method"]
    # Defaults that the example leaves out decode to the same value.
    assert DIALECT.methods[operation.method].decode(operation.encode(REQUESTS[name])) == REQUESTS[name]


@pytest.mark.requirement("SPARC-01", "SPARC-02", "SPARC-10")
@pytest.mark.parametrize("part", ["results", "events", "errors"])
def test_values_encode_to_their_json(part: str) -> None:
    recorded = recording()[part]
    for name, wire in GOLDEN[part].items():
        assert recorded.get(name) == wire, name
    assert set(recorded) == set(GOLDEN[part])


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, (_, value) in RESULTS.items()
        if isinstance(value, MemoryDocument | MemoryPage | MemoryDeletion | CapabilitiesDocument)
    ],
)
def test_our_client_reads_the_value(name: str) -> None:
    method, value = RESULTS[name]
    operation = next(each for each in CLIENT.operations.values() if each.method == method)
    assert operation.decode(GOLDEN["results"][name]) == value


def test_our_client_reads_a_workflow() -> None:
    workflow = CLIENT.operations[GetWorkflow].decode(GOLDEN["results"]["sparc/workflow/get"])
    first, second = workflow.phases[:2]
    assert (workflow.name, workflow.state, workflow.phase, workflow.runs_until) == (
        SHOP,
        WORKFLOW.state,
        WORKFLOW.phase,
        WORKFLOW.runs_until,
    )
    assert [phase.tasks for phase in workflow.phases] == [phase.tasks for phase in WORKFLOW.phases]
    assert [part.text or part.data for part in first.artifacts[0].parts] == ["Done.", {"total": 42}]
    assert (first.result_task_id, second.result_task_id, second.artifacts) == (TASK, None, ())
    assert (workflow.configuration, workflow.agent_types, workflow.reason) == (
        {"depth": 2},
        ("coder",),
        "the task failed",
    )
    assert (workflow.created_at, workflow.updated_at) == (WORKFLOW.created_at, WORKFLOW.updated_at)


def test_every_other_method_is_that_of_0_2() -> None:
    here = {name.partition(".")[0] for name in REQUESTS}
    others = DIALECT.methods.keys() - here
    assert others
    assert all(DIALECT.methods[name] is v0_2.DIALECT.methods[name] for name in others)


def test_bodies_of_webhooks_and_the_card_are_those_of_0_2() -> None:
    assert (DIALECT.push, DIALECT.encode_card) == (v0_2.DIALECT.push, v0_2.DIALECT.encode_card)


def test_nothing_else_is_recorded() -> None:
    assert set(GOLDEN) == {"requests", *recording()}
    assert set(GOLDEN["requests"]) == set(REQUESTS)
    assert {method for method, _ in RESULTS.values()} | {"message/stream"} == {
        name.partition(".")[0] for name in REQUESTS
    }
