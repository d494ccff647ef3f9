"""The streaming client of a chat endpoint that speaks the OpenAI wire format. The agent that uses it is in agents.py.

What goes wrong is a Failure, or a Retry if it passes, in words that tell nothing of the endpoint's address, its
answers, or the key.
"""

import functools
import re
import ssl
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from itertools import groupby
from typing import Any

import httpx
import msgspec
import orjson
from django.conf import settings
from msgspec import UNSET, Struct

from a2a.run import Failure, Retry
from a2a.types import Json, Message, Role

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""Between two pieces of an answer."""
LINE_BYTES = 1_000_000
"""The longest line of an honest endpoint."""
_FIELDS = (b":", b"event:", b"id:", b"retry:")
"""Fields that a stream of events may hold besides data."""
_REFUSALS = {
    401: "refused this server's credentials",
    403: "refused this server's credentials",
    404: "does not know the model, or is not a chat endpoint",
    413: "found the conversation too long",
    429: "has too much to do or its quota is used up; try again later",
}


_PASSING = {408, 409, 425, 429}
"""Statuses below 500 after which another attempt may go well."""


class Delta(Struct):
    """The news of a piece of an answer."""

    content: str | None = None


class Choice(Struct):
    """One of the answers that a model makes; it is asked for one."""

    delta: Delta | None = None
    finish_reason: str | None = None


class Piece(Struct):
    """The value of a data line."""

    choices: list[Choice] | None = None
    error: Any = None


def configured() -> bool:
    """There is a model to ask."""
    return bool(settings.LLM_BASE_URL and settings.LLM_MODEL)


def misconfigured() -> str:
    """Say in a sentence, without their values, what is wrong with the settings; empty if nothing is."""
    if bool(settings.LLM_BASE_URL) is not bool(settings.LLM_MODEL):
        name = "LLM_MODEL" if settings.LLM_BASE_URL else "LLM_BASE_URL"
        return f"The llm agent needs both LLM_BASE_URL and LLM_MODEL; {name} is not set."
    if settings.LLM_BASE_URL and not _address(settings.LLM_BASE_URL):
        return "LLM_BASE_URL must be like https://host/v1: no user, password, query or fragment."
    if not re.fullmatch(r"[\x21-\x7e]*", settings.LLM_API_KEY):
        return "LLM_API_KEY has characters that no HTTP header can carry."
    return ""


def _address(url: str) -> bool:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    plain = not (parts.userinfo or parts.query or parts.fragment)
    return parts.scheme in {"http", "https"} and bool(parts.host) and plain


# ------------------------------------------------------------------ asking


def dialogue(messages: Iterable[Message]) -> list[Json]:
    """Messages as the endpoint wants them: who and what, without two in a row by the same, which some models refuse.
    A message of white space alone is left out; in all others each character stays."""
    said = [("user" if item.role is Role.USER else "assistant", words(item)) for item in messages]
    turns = groupby((pair for pair in said if pair[1].strip()), key=lambda pair: pair[0])
    return [{"role": role, "content": "\n\n".join(text for _, text in pairs)} for role, pairs in turns]


def words(message: Message) -> str:
    """Return what a model can read of a message, part by part: text as it is, and data as JSON."""
    pieces = [orjson.dumps(part.data).decode() if part.data is not UNSET else part.text for part in message.parts]
    return "\n".join(piece for piece in pieces if piece)


async def answer(messages: list[Json]) -> AsyncGenerator[str, None]:
    """The model's answer as it comes. Closing this, or canceling who waits for it, closes the connection.
    Raises Failure and Retry, also after some of the answer has been given."""
    if misconfigured():
        raise Failure("The language model is not configured properly on this server.")
    begun = False
    try:
        async with _client() as client, client.stream("POST", _url(), **_question(messages)) as response:
            if response.status_code != httpx.codes.OK:
                raise _refusal(response)
            async with aclosing(_texts(response)) as texts:
                async for text in texts:
                    begun = begun or bool(text.strip())
                    yield text
    except httpx.HTTPError as error:
        raise Retry(_breakdown(error)) from error
    if not begun:
        raise Failure("The language model gave an empty answer.")


def _client() -> httpx.AsyncClient:
    """One for each answer: closing it leaves nothing of the call behind."""
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    return httpx.AsyncClient(verify=_certificates(), trust_env=False, timeout=timeout)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Loading them takes 30 ms, which all runs of the process would wait for each time."""
    return httpx.create_ssl_context(trust_env=False)


def _url() -> str:
    return f"{settings.LLM_BASE_URL}/chat/completions"


def _question(messages: list[Json]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream", "Accept-Encoding": "identity"}
    if settings.LLM_API_KEY:
        headers["Authorization"] = f"Bearer {settings.LLM_API_KEY}"
    return {
        "headers": headers,
        "content": orjson.dumps({"model": settings.LLM_MODEL, "messages": messages, "stream": True}),
    }


# ----------------------------------------------------------------- reading


async def _texts(response: httpx.Response) -> AsyncGenerator[str, None]:
    """The text of each piece, until the endpoint says that the answer is complete."""
    finished = False
    async with aclosing(_data(response)) as lines:
        async for line in lines:
            if line == b"[DONE]":
                return
            text, reason = _read(line)
            finished = finished or reason is not None
            if text:
                yield text
    if not finished:  # Some endpoints say no [DONE], but all give a reason for the end.
        raise Retry("The language model's answer broke off.")


def _read(line: bytes) -> tuple[str | None, str | None]:
    """The new text, and why the answer ends if it does."""
    try:
        piece = msgspec.json.decode(line, type=Piece)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _senseless() from None
    if piece.error is not None:
        raise Failure("The language model reported an error.")
    if piece.choices is None:
        raise _senseless()
    if not piece.choices:  # It counts tokens.
        return None, None
    first = piece.choices[0]
    return first.delta.content if first.delta else None, first.finish_reason


async def _data(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """The value of each data line. (Not httpx's aiter_lines: it also splits at U+2028, which JSON may hold.)"""
    rest = b""
    async with aclosing(response.aiter_bytes()) as blocks:  # type: ignore[type-var]  # it is a generator
        async for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > LINE_BYTES:
                raise _senseless()
            for line in lines:
                if (value := _value(line)) is not None:
                    yield value
    if (value := _value(rest)) is not None:
        yield value


def _value(line: bytes) -> bytes | None:
    line = line.strip()
    if line.startswith(b"data:"):
        return line[5:].strip()
    if line and not line.startswith(_FIELDS):
        raise _senseless()
    return None


# ----------------------------------------------------------- what went wrong


def _senseless() -> Failure:
    return Failure("The language model's endpoint answered with something that is not a stream of text.")


def _refusal(response: httpx.Response) -> Failure:
    """Return the failure for a status other than 200; for one that passes, a Retry with the endpoint's own time."""
    status = response.status_code
    words = _REFUSALS.get(status) or ("is out of order" if status >= 500 else "did not accept the request")
    sentence = f"The language model's endpoint {words} (HTTP {status})."
    if status not in _PASSING and status < 500:
        return Failure(sentence)
    after = response.headers.get("Retry-After", "")
    return Retry(sentence, after=float(after) if after.isascii() and after.isdigit() and len(after) < 9 else None)


def _breakdown(error: httpx.HTTPError) -> str:
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "The language model's endpoint cannot be reached."
        case httpx.TimeoutException():
            return f"The language model was silent for {READ_SECONDS:g} s and was given up."
        case _:
            return "The connection to the language model broke."
