"""The difference between two states of a task: what hostile states cost."""

from typing import Any

import pytest

from a2a.client import news as module
from a2a.client.news import news
from a2a.client.reading import UNDATED
from a2a.events import ArtifactAdded
from a2a.states import TaskState
from a2a.types import Artifact, Part, Status, Task


def task(*parts: Part) -> Task:
    artifacts = (Artifact(artifact_id="a", parts=parts),)
    return Task(id="t", context_id="c", status=Status(state=TaskState.WORKING, timestamp=UNDATED), artifacts=artifacts)


def test_a_text_in_many_pieces_is_joined_once(monkeypatch: pytest.MonkeyPatch) -> None:
    copies: list[int] = []
    replace = module.replace

    def counting(value: Any, **changes: Any) -> Any:
        copies.append(1)
        return replace(value, **changes)

    monkeypatch.setattr(module, "replace", counting)
    pieces = [Part(text="x")] * 1_000
    other = Part(text="y", media_type="text/html")
    (event,) = news(task(Part(text="x" * 10)), task(*pieces, other, *pieces))
    assert isinstance(event, ArtifactAdded)
    assert event.append
    assert event.artifact.parts == (Part(text="x" * 990), other, Part(text="x" * 1_000))
    assert len(copies) < 10, "a copy for each piece takes quadratic time"
