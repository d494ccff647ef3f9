"""The tasks of a workflow with their results, as operators read them over their API and by command."""

from collections.abc import Callable
from typing import Any

import orjson

from tasks_app.models import Workflow
from tasks_app.operators import columns


def details_of(row: Workflow, redact: Callable[[bytes], str]) -> dict[str, Any]:
    """Return the configuration, without secrets, and the preferences of a workflow, and its tasks with their results in
    their order."""
    tasks = row.tasks.order_by("pk").values("artifacts", *columns.PHASE_TASK)
    return {
        "configuration": orjson.loads(redact(row.configuration.encode())),
        "agent_types": orjson.loads(row.agent_types),
        "tasks": [
            task | {"artifacts": orjson.loads(task["artifacts"]) if task["artifacts"] else None} for task in tasks
        ],
    }
