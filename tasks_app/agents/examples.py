"""The agents that Taskdesk ships. Their docstrings are their descriptions on cards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from django.conf import settings

from a2a.agents import agent
from a2a.media import ANYTHING
from a2a.run import Run

STORY = (
    "A small server stood at the edge of the network. Every morning messages came, and it gave each of them a number. "
    "One night the power failed in the middle of a sentence. When the lights came back, it looked into its log, found "
    "the last number it had written, and went on with the next word."
)


@agent(quick=True, input_modes=[ANYTHING], output_modes=[ANYTHING])
async def echo(run: Run) -> Any:
    """Says back what it is told."""
    return run.artifact(*run.message.parts, id="echo", name="echo", last=True)


@agent(attempts=3, output_modes=["text/plain"])
async def story(run: Run, pause: float = 0.3, words: int = 3) -> AsyncIterator[Any]:
    """Tells a short story, a few words at a time; `pause` seconds lie between the chunks."""
    tokens = STORY.split(" ")
    yield run.status("Once upon a time")
    for place in range(0, len(tokens), max(1, words)):
        end = place + max(1, words)
        text = " ".join(tokens[place:end]) + (" " if end < len(tokens) else "")
        yield run.artifact(text, id="story", name="story" if place == 0 else None, last=end >= len(tokens))
        if end < len(tokens):
            await asyncio.sleep(min(max(pause, 0.0), 10.0))


@agent(skills=["introduce"], input_modes=["text/*"], output_modes=["text/plain"])
async def interview(run: Run) -> AsyncIterator[Any]:
    """Asks for a name and for a wish, then sums up."""
    answers = [message.text for message in run.history if message.role == "user"]
    if len(answers) == 1:
        yield run.ask("What is your name?")
    elif len(answers) == 2:
        yield run.ask(f"Pleased to meet you, {answers[1]}. What can I do for you?")
    else:
        yield run.artifact(f"{answers[1]} wishes: {answers[2]}", id="summary", name="summary", last=True)


BACKOFF = 2.0
"""Seconds before a second attempt at a model that was overloaded or away; each further pause is twice as long."""


async def llm(run: Run) -> AsyncIterator[Any]:
    """Answers with a language model, which knows what was said in the context before."""
    from tasks_app.agents.llm import answer, dialogue, words  # imported late: httpx takes as long to load as Django

    if not words(run.message).strip():
        yield run.reject("A language model reads text and data; there is none in this message.")
        return
    # Messages after it in the task's history are notices from the server, such as that of an interruption.
    history = run.history[: run.history.index(run.message) + 1]
    async with aclosing(answer(dialogue((*run.conversation, *history)))) as texts:
        async for text in texts:
            yield text


def offer_llm() -> None:
    """Register the llm agent if the settings name a model."""
    if settings.LLM_BASE_URL and settings.LLM_MODEL:
        register = agent(
            skills=["chat"],
            timeout=600,
            attempts=3,
            backoff=BACKOFF,
            input_modes=["text/*", "application/json"],
            output_modes=["text/plain"],
        )
        register(llm)


offer_llm()
