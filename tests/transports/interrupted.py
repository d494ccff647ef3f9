"""Streams that end before their task, which works until it is stopped."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase

from a2a.requests import CancelTask
from tasks_app.event_log.readers import readers
from tasks_app.models import Task
from tests.conftest import PATIENCE, Person
from tests.operations.asking import ask


async def nothing() -> None:
    pass


def interrupted(
    person: Person, answer: Awaitable[HttpResponseBase], meanwhile: Callable[[], Awaitable[Any]] = nothing
) -> list[bytes]:
    """Return the whole stream of an answer. Something happens after its first event, and its task is canceled after
    its end."""

    async def whole() -> list[bytes]:
        response = await answer
        assert isinstance(response, StreamingHttpResponse)
        chunks: Any = aiter(response.streaming_content)  # type: ignore[arg-type]
        seen = [await anext(chunks)]
        await meanwhile()
        async with asyncio.timeout(PATIENCE):
            return seen + [chunk async for chunk in chunks]

    try:
        seen = asyncio.run(whole())
    finally:
        readers.draining = False
    task = Task.objects.get()
    assert task.state in {"submitted", "working"}, "the stream has ended, and the task has not"
    ask(person, CancelTask(id=task.id))
    return seen
