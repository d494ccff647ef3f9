"""A streaming client for a chat endpoint that speaks the OpenAI wire format. The agent `llm` in examples.py uses it.

An error is raised as a Failure, or as a Retry if it may pass. Its sentence never contains the endpoint's address, its
answer, or the key.
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

from a2a.failures import Failure, Retry
from a2a.types import Json, Message, Role
from tasks_app.outbound.bodies import UNCOMPRESSED, pieces_of

CONNECT_SECONDS = 5.0
READ_SECONDS = 60.0
"""The longest pause between two pieces of an answer."""
LINE_BYTES = 1_000_000
"""The limit for a line of the answer. No honest endpoint sends a longer one."""
_FIELDS = (b":", b"event:", b"id:", b"retry:")
"""Fields that an event stream may have besides data."""
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
    """The new text in a piece of an answer."""

    content: str | None = None


class Choice(Struct):
    """One of the answers of a model. We ask for one only."""

    delta: Delta | None = None
    finish_reason: str | None = None


class Piece(Struct):
    """The JSON value of a data line."""

    choices: list[Choice] | None = None
    error: Any = None


def find_problem() -> str:
    """Return a sentence that says what is wrong with the settings, without their values; empty if they are right."""
    if bool(settings.LLM_BASE_URL) is not bool(settings.LLM_MODEL):
        name = "LLM_MODEL" if settings.LLM_BASE_URL else "LLM_BASE_URL"
        return f"The llm agent needs both LLM_BASE_URL and LLM_MODEL; {name} is not set."
    if settings.LLM_BASE_URL and not _is_plain_url(settings.LLM_BASE_URL):
        return "LLM_BASE_URL must be like https://host/v1: no user, password, query or fragment."
    if not re.fullmatch(r"[\x21-\x7e]*", settings.LLM_API_KEY):
        return "LLM_API_KEY has characters that no HTTP header can carry."
    return ""


def _is_plain_url(url: str) -> bool:
    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        return False
    plain = not (parts.userinfo or parts.query or parts.fragment)
    return parts.scheme in {"http", "https"} and bool(parts.host) and plain


# ------------------------------------------------------------------ asking


def dialogue(messages: Iterable[Message]) -> list[Json]:
    """Return messages in the endpoint's form.

    Consecutive messages of one role are joined, because some models refuse them. A message of white space alone is left
    out; in all others each character stays.
    """
    pairs = [("user" if item.role is Role.USER else "assistant", words(item)) for item in messages]
    turns = groupby((pair for pair in pairs if pair[1].strip()), key=lambda pair: pair[0])
    return [{"role": role, "content": "\n\n".join(text for _, text in pairs)} for role, pairs in turns]


def words(message: Message) -> str:
    """Return the parts of a message that a model can read: text as it is, and data as JSON."""
    pieces = [orjson.dumps(part.data).decode() if part.data is not UNSET else part.text for part in message.parts]
    return "\n".join(piece for piece in pieces if piece)


async def answer(messages: list[Json]) -> AsyncGenerator[str, None]:
    """Yield the model's answer piece by piece. Closing the generator, or cancelling its reader, closes the connection.

    Raises Failure and Retry, even after part of the answer.
    """
    if find_problem():
        raise Failure("The language model is not configured properly on this server.")
    has_text = False
    try:
        async with _client() as client, client.stream("POST", _url(), **_question(messages)) as response:
            if response.status_code != httpx.codes.OK:
                raise _refusal(response)
            async with aclosing(_texts(response)) as texts:
                async for text in texts:
                    has_text = has_text or bool(text.strip())
                    yield text
    except (httpx.HTTPError, ssl.SSLError) as error:  # httpx maps no error of TLS after the handshake
        raise Retry(_breakdown(error)) from error
    if not has_text:
        raise Failure("The language model gave an empty answer.")


def _client() -> httpx.AsyncClient:
    """Return an HTTP client for one answer. Closing it closes the connection."""
    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    return httpx.AsyncClient(verify=_certificates(), trust_env=False, timeout=timeout)


@functools.cache
def _certificates() -> ssl.SSLContext:
    """Return the certificates of trusted authorities. They are cached: loading them blocks the event loop for 30 ms."""
    return httpx.create_ssl_context(trust_env=False)


def _url() -> str:
    return f"{settings.LLM_BASE_URL}/chat/completions"


def _question(messages: list[Json]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Accept": "text/event-stream"} | UNCOMPRESSED
    if settings.LLM_API_KEY:
        headers["Authorization"] = f"Bearer {settings.LLM_API_KEY}"
    return {
        "headers": headers,
        "content": orjson.dumps({"model": settings.LLM_MODEL, "messages": messages, "stream": True}),
    }


# ----------------------------------------------------------------- reading


async def _texts(response: httpx.Response) -> AsyncGenerator[str, None]:
    """Yield the text of each piece until the answer is complete. Raises Retry if it breaks off."""
    finished = False
    async with aclosing(_data(response)) as lines:
        async for line in lines:
            if line == b"[DONE]":
                return
            text, reason = _read(line)
            finished = finished or reason is not None
            if text:
                yield text
    if not finished:  # Some endpoints send no [DONE], but all give a finish_reason.
        raise Retry("The language model's answer broke off.")


def _read(line: bytes) -> tuple[str | None, str | None]:
    """Return the new text in a piece, and the reason for the end of the answer if this is its last piece."""
    try:
        piece = msgspec.json.decode(line, type=Piece)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise _not_a_stream() from None
    if piece.error is not None:
        raise Failure("The language model reported an error.")
    if piece.choices is None:
        raise _not_a_stream()
    if not piece.choices:  # A piece with the count of tokens.
        return None, None
    first = piece.choices[0]
    return first.delta.content if first.delta else None, first.finish_reason


async def _data(response: httpx.Response) -> AsyncGenerator[bytes, None]:
    """Yield the value of each data line. httpx's aiter_lines would also split at U+2028, which JSON may contain."""
    rest = b""
    async with aclosing(pieces_of(response)) as blocks:
        async for block in blocks:
            *lines, rest = (rest + block).split(b"\n")
            if len(rest) > LINE_BYTES:
                raise _not_a_stream()
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
        raise _not_a_stream()
    return None


# ------------------------------------------------------------------ errors


def _not_a_stream() -> Failure:
    return Failure("The language model's endpoint answered with something that is not a stream of text.")


def _refusal(response: httpx.Response) -> Failure:
    """Return the error for a status other than 200: a Retry if it may pass, after the time that the endpoint names."""
    status = response.status_code
    words = _REFUSALS.get(status) or ("is out of order" if status >= 500 else "did not accept the request")
    sentence = f"The language model's endpoint {words} (HTTP {status})."
    if status not in _PASSING and status < 500:
        return Failure(sentence)
    after = response.headers.get("Retry-After", "")
    return Retry(sentence, after=float(after) if after.isascii() and after.isdigit() and len(after) < 9 else None)


def _breakdown(error: Exception) -> str:
    match error:
        case httpx.ConnectError() | httpx.ConnectTimeout():
            return "The language model's endpoint cannot be reached."
        case httpx.TimeoutException():
            return f"The language model was silent for {READ_SECONDS:g} s and was given up."
        case _:
            return "The connection to the language model broke."
