"""Questions of tests."""

import asyncio
from collections.abc import Callable
from typing import Any

from tasks_app.zones.verification import Question, Reply, ask
from tests.conftest import Person

TOKEN = "xoxb-never-stored-anywhere"


def answers(
    person: Person, text: str = "hello", *, each: Callable[[Reply], None] = lambda reply: None, **more: Any
) -> list[Reply]:
    """Return all replies to a question."""

    async def work() -> list[Reply]:
        replies = []
        async for reply in ask(Question(channel="C1", text=text, bot_token=TOKEN, **more), person.caller):
            each(reply)
            replies.append(reply)
        return replies

    return asyncio.run(work())
