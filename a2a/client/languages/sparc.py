"""SPARC on the client's side: 0.2 with phases, workflows, batches and memory. The server's is in a2a/dialects/sparc/.

The names of the events of a stream repeat the `kind` of their data, which the client reads.
"""

from datetime import datetime
from typing import Any

import msgspec
from msgspec.structs import replace

from a2a.batches import BatchInput, ExecuteBatch
from a2a.client.answers import Workflow, WorkflowPhase
from a2a.client.language import Operation
from a2a.client.languages import v0_2, v0_3
from a2a.client.refusals import Numbers, codes_of
from a2a.dialects.json.json_0_x import decode_state, encode_message
from a2a.dialects.sparc.language import DIALECT
from a2a.dialects.sparc.webhooks import SET
from a2a.dialects.sparc.workflows import Capabilities
from a2a.errors import InvalidParams
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
from a2a.params import read_time
from a2a.requests import CreatePushConfig, Priority, Request, SendMessage, StreamMessage
from a2a.types import Json
from a2a.workflows import (
    CapabilitiesDocument,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    Phase,
    PhaseState,
    PhaseTaskDocument,
    SendInPhase,
    SetPhase,
    StreamInPhase,
    WorkflowState,
)

# ---------------------------------------------------------------- requests


def members(**values: Any) -> Json:
    """Return the members that are not None. An empty list is a wish too, such as that for no preferred agents."""
    return {name: value for name, value in values.items() if value is not None}


def encode_send(request: SendMessage) -> Json:
    """Return the params of a message, with its phase in the configuration and its workflow in the metadata."""
    wire = v0_3.encode_send(request)
    own: Json = {} if request.priority is Priority.NORMAL else {"priority": request.priority.name.lower()}
    if isinstance(request, SendInPhase | StreamInPhase):
        own |= members(workflowId=request.workflow)
        wire["configuration"] |= members(sparcPhase=request.phase)
    return wire | ({"metadata": (request.metadata or {}) | own} if own else {})


def encode_set(request: CreatePushConfig) -> Json:
    return {"taskId": request.task_id, "config": v0_3.encode_config(request.config)}


def encode_phase(request: SetPhase) -> Json:
    return _workflow_members(request) | {"phase": request.phase}


def encode_execute(request: ExecuteWorkflow) -> Json:
    message = None if request.message is None else encode_message(request.message)
    return _workflow_members(request) | members(phase=request.phase, message=message)


def _workflow_members(request: SetPhase | ExecuteWorkflow) -> Json:
    types = None if request.agent_types is None else list(request.agent_types)
    return {"workflowId": request.workflow} | members(agentTypes=types, configuration=request.configuration)


def encode_workflow(request: GetWorkflow) -> Json:
    return {"workflowId": request.workflow}


def encode_nothing(request: GetCapabilities) -> Json:
    return {}


def encode_batch(request: ExecuteBatch) -> Json:
    configuration = members(maxConcurrent=request.max_concurrent, batchSize=request.batch_size)
    return {
        "operation": request.operation,
        "tasks": [_item(item, place) for place, item in enumerate(request.items)],
        "configuration": configuration | {"optimization": request.optimization},
    } | members(metadata=request.metadata)


def _item(item: BatchInput, place: int) -> str | Json:
    if item.message is not None:
        return {"message": encode_message(item.message)}
    if item.task_id is None:
        raise InvalidParams((f"items[{place}]", "must have a task or a message"))
    return item.task_id


def encode_store(request: StoreMemory) -> Json:
    entry = {"namespace": request.namespace, "key": request.key, "data": request.data}
    return entry | members(ttl=request.ttl, ifVersion=request.if_version)


def encode_key(request: RetrieveMemory) -> Json:
    return {"namespace": request.namespace, "key": request.key}


def encode_delete(request: DeleteMemory) -> Json:
    return {"namespace": request.namespace, "key": request.key} | members(ifVersion=request.if_version)


def encode_list(request: ListMemory) -> Json:
    page = members(limit=request.page_size, cursor=request.page_token)
    return members(namespace=request.namespace, prefix=request.prefix or None) | page


def encode_search(request: SearchMemory) -> Json:
    conditions = members(text=request.text or None, field=request.field or None, value=request.value)
    page = members(limit=request.page_size, cursor=request.page_token)
    return {"namespace": request.namespace} | conditions | page


# ----------------------------------------------------------------- answers


def decode_workflow(wire: Json) -> Workflow:
    until = wire.get("runsUntil")
    return Workflow(
        name=wire["workflowId"],
        state=WorkflowState(wire["state"]),
        phase=Phase(wire["phase"]),
        phases=tuple(_phase(phase) for phase in wire["phases"]),
        created_at=_time(wire, "createdAt"),
        updated_at=_time(wire, "updatedAt"),
        agent_types=tuple(wire.get("agentTypes") or ()),
        configuration=wire.get("configuration") or {},
        metrics=wire.get("metrics") or {},
        runs_until=Phase(until) if until else None,
        reason=wire.get("reason") or "",
    )


def _phase(wire: Json) -> WorkflowPhase:
    result = wire.get("result")
    return WorkflowPhase(
        phase=Phase(wire["phase"]),
        state=PhaseState(wire["state"]),
        tasks=tuple(_task(task) for task in wire.get("tasks") or ()),
        result_task_id=result["taskId"] if result else None,
        artifacts=tuple(v0_3.FORM.artifact(artifact) for artifact in result["artifacts"]) if result else (),
    )


def _task(wire: Json) -> PhaseTaskDocument:
    state = decode_state(wire["state"], "state")
    if state is None:
        raise InvalidParams(("state", "must be the state of a task, not unknown"))
    return PhaseTaskDocument(
        task_id=wire["taskId"],
        agent=wire["agent"],
        state=state,
        created_at=_time(wire, "createdAt"),
        ended_at=read_time(wire.get("endedAt"), "endedAt"),
    )


def decode_capabilities(wire: Json) -> CapabilitiesDocument:
    return msgspec.convert(msgspec.structs.asdict(msgspec.convert(wire, Capabilities)), CapabilitiesDocument)


def decode_entry(wire: Json) -> MemoryDocument:
    return MemoryDocument(
        namespace=wire["namespace"],
        key=wire["key"],
        version=wire["version"],
        created_at=_time(wire, "createdAt"),
        updated_at=_time(wire, "updatedAt"),
        expires_at=read_time(wire.get("expiresAt"), "expiresAt"),
        size=wire.get("size") or 0,
        data=wire.get("data", msgspec.UNSET),
    )


def decode_page(wire: Json) -> MemoryPage:
    entries = tuple(decode_entry(entry) for entry in wire["entries"])
    return MemoryPage(entries=entries, next_page_token=wire.get("nextCursor") or "")


def decode_deletion(wire: Json) -> MemoryDeletion:
    return MemoryDeletion(namespace=wire["namespace"], key=wire["key"])


def _time(wire: Json, name: str) -> datetime:
    time = read_time(wire[name], name)
    if time is None:
        raise InvalidParams((name, "is required"))
    return time


OPERATIONS: dict[type[Request], Operation] = {
    SendMessage: Operation(method="message/send", encode=encode_send, decode=v0_3.decode_answer),
    StreamMessage: Operation(method="message/stream", encode=encode_send, decode=v0_3.decode_update),
    SendInPhase: Operation(method="message/send", encode=encode_send, decode=v0_3.decode_answer),
    StreamInPhase: Operation(method="message/stream", encode=encode_send, decode=v0_3.decode_update),
    CreatePushConfig: Operation(method=SET, encode=encode_set, decode=v0_3.decode_config),
    SetPhase: Operation(method="sparc/phase/set", encode=encode_phase, decode=decode_workflow),
    ExecuteWorkflow: Operation(method="sparc/execute", encode=encode_execute, decode=decode_workflow),
    GetWorkflow: Operation(method="sparc/workflow/get", encode=encode_workflow, decode=decode_workflow),
    GetCapabilities: Operation(method="agent/capabilities", encode=encode_nothing, decode=decode_capabilities),
    ExecuteBatch: Operation(method="batchtools/execute", encode=encode_batch, decode=v0_3.decode_answer),
    StoreMemory: Operation(method="memory/store", encode=encode_store, decode=decode_entry),
    RetrieveMemory: Operation(method="memory/retrieve", encode=encode_key, decode=decode_entry),
    DeleteMemory: Operation(method="memory/delete", encode=encode_delete, decode=decode_deletion),
    ListMemory: Operation(method="memory/list", encode=encode_list, decode=decode_page),
    SearchMemory: Operation(method="memory/search", encode=encode_search, decode=decode_page),
}
"""The operations that 0.2 lacks or has in another form."""
LANGUAGE = replace(
    v0_2.LANGUAGE,
    name=DIALECT.name,
    operations={**v0_2.LANGUAGE.operations, **OPERATIONS},
    numbers=Numbers(codes=codes_of(DIALECT.column)),
)
