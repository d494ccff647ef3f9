"""The JSON examples of SPARC's text, in its order, as they are printed. Comments of the text stand for no members."""

from typing import Any

from tests.seeds.sparc.client import LIST, SEND, SET_PHASE, STREAM, WEBHOOK

Json = dict[str, Any]


def call(number: str, method: str, params: Json) -> Json:
    return {"jsonrpc": "2.0", "method": method, "params": params, "id": number}


def answer(number: str, result: Json) -> Json:
    return {"jsonrpc": "2.0", "id": number, "result": result}


def error(code: int, message: str, data: Json) -> Json:
    return {"jsonrpc": "2.0", "id": "req-001", "error": {"code": code, "message": message, "data": data}}


def text(value: str) -> list[Json]:
    return [{"kind": "text", "text": value}]


STANDARD = call("unique-request-id", "message/send", SEND)
MESSAGE_SEND = call("req-001", "message/send", SEND)
MESSAGE_ANSWER = answer(
    "req-001",
    {
        "messageId": "msg-002",
        "contextId": "ctx-001",
        "parts": text("SPARC specification analysis completed. Requirements identified..."),
        "kind": "message",
        "metadata": {
            "sparcPhase": "specification",
            "processingTime": 450,
            "resourcesUsed": ["parallel_analysis", "constraint_validation"],
        },
    },
)
TASK_ANSWER = answer(
    "req-001",
    {
        "id": "task-001",
        "contextId": "ctx-001",
        "status": {
            "state": "submitted",
            "message": {
                "role": "agent",
                "parts": text("SPARC specification task initiated with parallel processing"),
                "messageId": "msg-002",
                "taskId": "task-001",
            },
            "timestamp": "2024-01-15T10:30:00Z",
        },
        "history": [],
        "kind": "task",
        "metadata": {"sparcPhase": "specification", "estimatedDuration": 300000, "batchProcessing": True},
    },
)
MESSAGE_STREAM = call("req-002", "message/stream", STREAM)
EVENTS: list[tuple[str, Json]] = [
    (
        "task-status-update",
        answer(
            "req-002",
            {
                "id": "task-002",
                "contextId": "ctx-002",
                "status": {
                    "state": "working",
                    "message": {
                        "role": "agent",
                        "parts": text("Initiating TDD cycle: Red phase - writing failing tests"),
                    },
                    "timestamp": "2024-01-15T10:31:00Z",
                },
                "kind": "task",
            },
        ),
    ),
    (
        "artifact-update",
        answer(
            "req-002",
            {
                "taskId": "task-002",
                "contextId": "ctx-002",
                "artifact": {
                    "artifactId": "test-001",
                    "name": "authentication_tests.ts",
                    "parts": text("describe('Authentication Module', () => {});"),
                },
                "append": False,
                "lastChunk": False,
                "kind": "artifact-update",
            },
        ),
    ),
    (
        "status-update",
        answer(
            "req-002",
            {
                "taskId": "task-002",
                "status": {"state": "completed", "timestamp": "2024-01-15T10:35:00Z"},
                "final": True,
                "kind": "status-update",
            },
        ),
    ),
]
GET = call("req-003", "tasks/get", {"taskId": "task-001"})
GET_ANSWER = answer(
    "req-003",
    {
        "id": "task-001",
        "contextId": "ctx-001",
        "status": {"state": "completed", "timestamp": "2024-01-15T10:32:00Z"},
        "artifacts": [
            {
                "artifactId": "spec-001",
                "name": "authentication_specification.md",
                "parts": text("# Authentication System Specification\n\n## Requirements\n..."),
            }
        ],
        "history": [],
        "kind": "task",
        "metadata": {
            "sparcPhase": "specification",
            "completionTime": 120000,
            "resourcesUsed": ["parallel_analysis", "requirement_synthesis"],
        },
    },
)
CANCEL = call("req-004", "tasks/cancel", {"taskId": "task-001"})
TASKS_LIST = call("req-005", "tasks/list", LIST)
SET_WEBHOOK = call("req-006", "tasks/pushNotificationConfig/set", {"taskId": "task-001", "config": WEBHOOK})
GET_WEBHOOK = call("req-007", "tasks/pushNotificationConfig/get", {"taskId": "task-001"})
RESUBSCRIBE = call("req-008", "tasks/resubscribe", {"taskId": "task-001"})
PHASE_SET = call("req-009", "sparc/phase/set", SET_PHASE)
BATCH = call(
    "req-010",
    "batchtools/execute",
    {
        "operation": "parallel_analysis",
        "tasks": ["task-001", "task-002", "task-003"],
        "configuration": {"maxConcurrent": 5, "batchSize": 10, "optimization": "performance"},
    },
)
STORE = call(
    "req-011",
    "memory/store",
    {
        "namespace": "sparc",
        "key": "workflow-001-specification",
        "data": {
            "requirements": ["auth", "validation", "security"],
            "constraints": ["performance", "scalability"],
            "phase": "specification",
        },
        "ttl": 3600,
    },
)
ERRORS = (
    (
        call("req-001", "message/send", {}),
        error(-32600, "Invalid Request", {"details": "Missing required 'message' parameter", "requestId": "req-001"}),
    ),
    (
        call("req-001", "tasks/get", {"taskId": "task-999"}),
        error(-32001, "TaskNotFoundError", {"taskId": "task-999", "details": "Task not found or expired"}),
    ),
    (
        call("req-001", "sparc/phase/set", {"workflowId": "sparc-workflow-001", "phase": "completion"}),
        error(
            -33001,
            "SPARCPhaseError",
            {
                "currentPhase": "specification",
                "requestedPhase": "completion",
                "details": "Cannot skip intermediate phases",
            },
        ),
    ),
)
"""The calls that are refused, which the text does not print, and its error objects."""
SOCKET = call("ws-001", "message/send", SEND)
HEALTH: Json = {
    "status": "healthy",
    "version": "1.0.0",
    "uptime": 3600,
    "metrics": {"activeConnections": 25, "activeTasks": 10, "memoryUsage": 256, "cpuUsage": 45},
}
METRICS: Json = {
    "requests": {"total": 1500, "perSecond": 25.5, "errors": 12},
    "tasks": {"created": 45, "completed": 42, "failed": 1, "active": 2},
    "performance": {"averageResponseTime": 320, "p95ResponseTime": 850, "throughput": 18.3},
}
