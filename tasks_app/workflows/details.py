"""The tasks of a workflow with their results, as operators read them over their API and by command."""

from typing import Any

import orjson

from tasks_app.models import Workflow
from tasks_app.operators import columns


def details_of(row: Workflow) -> dict[str, Any]:
    """Return the configuration and the preferences of a workflow, and its tasks with their results in their order."""
    tasks = row.tasks.order_by("pk").values("artifacts", *columns.PHASE_TASK)
    return {
        "configuration": orjson.loads(row.configuration),
        "agent_types": orjson.loads(row.agent_types),
        "tasks": [
            task | {"artifacts": orjson.loads(task["artifacts"]) if task["artifacts"] else None} for task in tasks
        ],
    }
