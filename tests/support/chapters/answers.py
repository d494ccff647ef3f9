"""Answers of the story, as chapters compare them."""

import asyncio
from typing import Any

import pytest

from tests.conftest import PATIENCE
from tests.support.speaker import Frame, Json, Refused, Speaker


def text_of(task: Json) -> str:
    return "".join(part.get("text", "") for found in task.get("artifacts", ()) for part in found["parts"])


def folded(frames: list[Frame]) -> Json:
    """Fold frames into the artifacts' text and the last status, as a client does."""
    first, *rest = frames
    assert first.kind == "task"
    texts = {
        found["artifactId"]: [part["text"] for part in found["parts"]] for found in first.value.get("artifacts", ())
    }
    status = first.value["status"]
    for frame in rest:
        if frame.kind == "status":
            status = frame.value["status"]
        elif frame.kind == "artifact":
            found = frame.value["artifact"]
            new = [part["text"] for part in found["parts"]]
            texts[found["artifactId"]] = texts.get(found["artifactId"], []) + new if frame.value.get("append") else new
    return {"text": "".join("".join(parts) for parts in texts.values()), "status": status}


async def refusal(asking: Any) -> Json:
    with pytest.raises(Refused) as told:
        await asking
    return told.value.error


def reason(speaker: Speaker, error: Json) -> str:
    """Return the reason in the details, which each dialect writes in its own form."""
    if speaker.error_is_list:
        assert all(detail["@type"].startswith("type.googleapis.com/google.rpc.") for detail in error["data"])
        return str(error["data"][0]["reason"])
    assert isinstance(error.get("data", {}), dict)
    return str(error.get("data", {}).get("reason", ""))


async def working(speaker: Speaker, task_id: str, text: str) -> Json:
    """Return the task once it has said this."""
    async with asyncio.timeout(PATIENCE):
        while text not in text_of(task := await speaker.get(task_id)):  # noqa: ASYNC110  # another process
            await asyncio.sleep(0.02)
    return task
