"""The tasks of a workflow with their results, as operators read them over their API and by command."""

from collections.abc import Callable
from typing import Any

import orjson

from tasks_app.models import Workflow
from tasks_app.operators import columns


def details_of(row: Workflow, redact: Callable[[bytes], str], link: Callable[[str], str]) -> dict[str, Any]:
    """Return the configuration, without secrets, and the preferences of a workflow, and its tasks with their results in
    their order. What is damaged is its text. `link` puts links in the place of references to files, which are secrets.
    """
    tasks = row.tasks.order_by("pk").values("artifacts", *columns.PHASE_TASK)
    return {
        "configuration": _read(redact(row.configuration.encode())),
        "agent_types": _read(row.agent_types),
        "tasks": [
            task | {"artifacts": _read(link(task["artifacts"])) if task["artifacts"] else None} for task in tasks
        ],
    }


def _read(text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:  # a damaged row
        return text
