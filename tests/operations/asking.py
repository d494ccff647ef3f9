"""Requests of operation tests, short, and performed for a person."""

from itertools import count
from typing import Any

import orjson
from asgiref.sync import async_to_sync

from a2a.answers import Answer, TaskPage
from a2a.dialects.json.json_1_0 import encode_task, task_of
from a2a.requests import Request, SendMessage, StreamMessage
from a2a.types import Message, Part, Role, Task
from tasks_app.operations import Context, Follow, perform
from tests.conftest import Person

_numbers = count(1)


def message(text: str = "hello", **more: Any) -> Message:
    """Return a message of the caller, with an id of its own unless one is given."""
    values: dict[str, Any] = {"message_id": f"m-{next(_numbers)}", "role": Role.USER, "parts": (Part(text=text),)}
    return Message(**values | more)


def data(value: Any, **more: Any) -> Message:
    return message(parts=(Part(data=value),), **more)


def ask(person: Person, request: Request, **context: Any) -> Any:
    """Return the result of the request. Raises what the caller would be told."""
    return async_to_sync(perform)(request, Context(caller=person.caller, **context))


def send(person: Person, text: str | Message = "hello", agent: str | None = None, **more: Any) -> Answer:
    said = message(text) if isinstance(text, str) else text
    answer = ask(person, SendMessage(message=said, **more), agent=agent)
    assert isinstance(answer, Answer)
    return answer


def sent(person: Person, text: str | Message = "hello", agent: str | None = None, **more: Any) -> Task:
    """Return the task that the message made, or that it was for."""
    return shown(send(person, text, agent, **more))


def streamed(person: Person, text: str | Message = "hello", agent: str | None = None, **more: Any) -> Follow:
    said = message(text) if isinstance(text, str) else text
    follow = ask(person, StreamMessage(message=said, **more), agent=agent)
    assert isinstance(follow, Follow)
    return follow


def shown(answer: Any) -> Task:
    """Return the task as callers see it."""
    assert isinstance(answer, Answer)
    assert answer.task is not None
    return task_of(answer.task)


def page(result: Any) -> list[str]:
    """Return the ids on a page."""
    assert isinstance(result, TaskPage)
    return [task.id for task in result.tasks]


def text_of(task: Task) -> str:
    """Return all text of all artifacts."""
    return "".join(part.text or "" for artifact in task.artifacts for part in artifact.parts)


def words(task: Task) -> str:
    """Return everything a caller can read in a task."""
    return orjson.dumps(encode_task(task)).decode()
