"""The methods of workflows: to enter a phase, to run phases, to read a workflow; and what an agent can do."""

from typing import Annotated, Any

import orjson
from msgspec import UNSET, Struct, UnsetType

from a2a.answers import Result
from a2a.dialects.json.json_0_x import STATES, decode_message, encode_artifact
from a2a.dialects.json.json_1_0 import decode_artifact
from a2a.dialects.params_0_x import MessageParams
from a2a.dialects.sparc.sending import MAX_NAME, decode_phase, decode_workflow
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import Text, check, or_empty, rule, write_time
from a2a.states import TERMINAL
from a2a.types import Json
from a2a.workflows import (
    MAX_CONFIGURATION,
    PHASES,
    CapabilitiesDocument,
    ExecuteWorkflow,
    GetCapabilities,
    GetWorkflow,
    PhaseDocument,
    PhaseState,
    PhaseTaskDocument,
    SetPhase,
    WorkflowDocument,
    WorkflowState,
)

MAX_TYPES = 32
"""Agent types that a workflow may prefer."""
PhaseName = Annotated[str, rule(enum=list(PHASES))]
WorkflowName = Annotated[str, rule(minLength=1, maxLength=MAX_NAME)]


class SetPhaseParams(Struct, rename="camel"):
    workflow_id: WorkflowName
    phase: PhaseName
    agent_types: Annotated[list[Text] | None, rule(maxItems=MAX_TYPES)] = None
    configuration: Json | None = None


class ExecuteParams(Struct, rename="camel"):
    workflow_id: WorkflowName
    phase: Annotated[str | None, rule(enum=[None, *PHASES])] = None
    message: MessageParams | None = None
    agent_types: Annotated[list[Text] | None, rule(maxItems=MAX_TYPES)] = None
    configuration: Json | None = None


class WorkflowParams(Struct, rename="camel"):
    workflow_id: WorkflowName


class NoParams(Struct):
    pass


def decode_set_phase(params: Any) -> SetPhase:
    """Decode the params of sparc/phase/set. Raises InvalidParams."""
    wire = check(params, SetPhaseParams)
    return SetPhase(
        workflow=decode_workflow(wire["workflowId"], "workflowId"),
        phase=decode_phase(wire["phase"], "phase"),
        agent_types=_types(wire),
        configuration=_configuration(wire),
    )


def decode_execute(params: Any) -> ExecuteWorkflow:
    """Decode the params of sparc/execute. Raises InvalidParams."""
    wire = check(params, ExecuteParams)
    phase, message = wire.get("phase"), wire.get("message")
    return ExecuteWorkflow(
        workflow=decode_workflow(wire["workflowId"], "workflowId"),
        phase=None if phase is None else decode_phase(phase, "phase"),
        message=None if message is None else decode_message(message),
        agent_types=_types(wire),
        configuration=_configuration(wire),
    )


def decode_get(params: Any) -> GetWorkflow:
    """Decode the params of sparc/workflow/get. Raises InvalidParams."""
    wire = check(params, WorkflowParams)
    return GetWorkflow(workflow=decode_workflow(wire["workflowId"], "workflowId"))


def decode_capabilities(params: Any) -> GetCapabilities:
    """Decode the params of agent/capabilities, which has none. Raises InvalidParams."""
    check(or_empty(params), NoParams)
    return GetCapabilities()


def _types(wire: Json) -> tuple[str, ...] | None:
    names = wire.get("agentTypes")
    if names is not None and len(names) > MAX_TYPES:
        raise InvalidParams(("agentTypes", f"must have {MAX_TYPES} names at most"))
    return None if names is None else tuple(names)


def _configuration(wire: Json) -> Json | None:
    configuration: Json | None = wire.get("configuration")
    if configuration is not None and len(orjson.dumps(configuration)) > MAX_CONFIGURATION:
        raise InvalidParams(("configuration", f"must have {MAX_CONFIGURATION:,} characters at most"))
    return configuration


# ----------------------------------------------------------------- answers


class PhaseTask(Struct, rename="camel"):
    """A task of a phase."""

    task_id: str
    agent: str
    state: Annotated[str, rule(enum=sorted(STATES.values()))]
    created_at: str
    ended_at: str | UnsetType = UNSET
    duration_ms: int | UnsetType = UNSET


class PhaseResult(Struct, rename="camel"):
    """The result of a phase: the artifacts of its last completed task."""

    task_id: str
    artifacts: list[Json]


class WorkflowPhase(Struct, rename="camel"):
    """A phase of a workflow."""

    phase: PhaseName
    state: Annotated[str, rule(enum=[state.value for state in PhaseState])]
    tasks: list[PhaseTask]
    result: PhaseResult | UnsetType = UNSET


class WorkflowMetrics(Struct, rename="camel"):
    """The metrics of a workflow. Times are in milliseconds."""

    tasks_total: int
    tasks_completed: int
    tasks_failed: int
    tasks_active: int
    working_time: int
    tasks_per_phase: dict[str, int]
    resources_used: list[str]


class Workflow(Struct, rename="camel"):
    """A workflow."""

    kind: Annotated[str, rule(enum=["workflow"])]
    workflow_id: str
    state: Annotated[str, rule(enum=[state.value for state in WorkflowState])]
    phase: PhaseName
    phases: list[WorkflowPhase]
    agent_types: list[str]
    configuration: Json
    executing: bool
    created_at: str
    updated_at: str
    metrics: WorkflowMetrics
    runs_until: PhaseName | UnsetType = UNSET
    reason: str | UnsetType = UNSET


class Capabilities(Struct, rename="camel"):
    """The capabilities of an agent."""

    kind: Annotated[str, rule(enum=["capabilities"])]
    name: str
    version: str
    protocol_version: str
    streaming: bool
    push_notifications: bool
    skills: list[str]
    phases: list[PhaseName]
    input_modes: list[str]
    output_modes: list[str]
    task_seconds: float


def encode_workflow(result: Result) -> bytes:
    """Return a workflow."""
    if not isinstance(result, WorkflowDocument):
        raise TypeError(f"{type(result).__name__} is no workflow")
    out: Json = {
        "kind": "workflow",
        "workflowId": result.name,
        "state": result.state.value,
        "phase": result.phase.value,
        "phases": [_phase(phase) for phase in result.phases],
        "agentTypes": result.agent_types,
        "configuration": result.configuration or {},
        "executing": result.runs_until is not None,
        "createdAt": write_time(result.created_at),
        "updatedAt": write_time(result.updated_at),
        "metrics": metrics(result),
    }
    if result.runs_until is not None:
        out["runsUntil"] = result.runs_until.value
    if result.reason:
        out["reason"] = result.reason
    return orjson.dumps(out)


def _phase(phase: PhaseDocument) -> Json:
    out: Json = {
        "phase": phase.phase.value,
        "state": phase.state.value,
        "tasks": [_task(task) for task in phase.tasks],
    }
    if phase.result_task_id is not None:
        artifacts = orjson.loads(phase.artifacts or "[]")
        members = [encode_artifact(decode_artifact(artifact)) for artifact in artifacts]
        out["result"] = {"taskId": phase.result_task_id, "artifacts": members}
    return out


def _task(task: PhaseTaskDocument) -> Json:
    out: Json = {
        "taskId": task.task_id,
        "agent": task.agent,
        "state": STATES[task.state],
        "createdAt": write_time(task.created_at),
    }
    if task.ended_at is not None:
        out["endedAt"] = write_time(task.ended_at)
        out["durationMs"] = _milliseconds(task)
    return out


def _milliseconds(task: PhaseTaskDocument) -> int:
    return 0 if task.ended_at is None else round((task.ended_at - task.created_at).total_seconds() * 1000)


def metrics(workflow: WorkflowDocument) -> Json:
    """Return the metrics of a workflow: its tasks by state and by phase, their time, and the agents that worked."""
    tasks = [task for phase in workflow.phases for task in phase.tasks]
    ended = [task for task in tasks if task.state in TERMINAL]
    completed = [task for task in ended if task.state == "completed"]
    return {
        "tasksTotal": len(tasks),
        "tasksCompleted": len(completed),
        "tasksFailed": len(ended) - len(completed),
        "tasksActive": len(tasks) - len(ended),
        "workingTime": sum(_milliseconds(task) for task in ended),
        "tasksPerPhase": {phase.phase.value: len(phase.tasks) for phase in workflow.phases},
        "resourcesUsed": sorted({task.agent for task in tasks}),
    }


def encode_capabilities(result: Result) -> bytes:
    """Return what an agent can do."""
    if not isinstance(result, CapabilitiesDocument):
        raise TypeError(f"{type(result).__name__} is no list of capabilities")
    return orjson.dumps(
        {
            "kind": "capabilities",
            "name": result.name,
            "version": result.version,
            "protocolVersion": "0.2.9",
            "streaming": result.streaming,
            "pushNotifications": result.push_notifications,
            "skills": result.skills,
            "phases": [phase.value for phase in result.phases],
            "inputModes": result.input_modes,
            "outputModes": result.output_modes,
            "taskSeconds": result.task_seconds,
        }
    )


METHODS = {
    "sparc/phase/set": Method(
        request=SetPhase, decode=decode_set_phase, encode=encode_workflow, params=SetPhaseParams, result=Workflow
    ),
    "sparc/execute": Method(
        request=ExecuteWorkflow, decode=decode_execute, encode=encode_workflow, params=ExecuteParams, result=Workflow
    ),
    "sparc/workflow/get": Method(
        request=GetWorkflow, decode=decode_get, encode=encode_workflow, params=WorkflowParams, result=Workflow
    ),
    "agent/capabilities": Method(
        request=GetCapabilities,
        decode=decode_capabilities,
        encode=encode_capabilities,
        params=NoParams,
        result=Capabilities,
    ),
}
"""The methods of workflows, and agent/capabilities."""
