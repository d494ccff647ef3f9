"""The files of a question, fetched from Slack with the bot token. The user is told of each file that is left out."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from msgspec import Struct

from a2a.params import write_base64
from tasks_app.off_loop import LARGE, off_loop
from tasks_app.outbound import dialling, policy
from tasks_app.outbound.bodies import UNCOMPRESSED, TooLarge, read_body
from tasks_app.slack.questions import Turn
from tasks_app.slack.space import MOST_FILES
from tasks_app.slack.web_api import SlackAway

GROWTH = 65_536
"""Bytes by which a file may be larger than its event says, because it was edited since."""
SECONDS = 60.0
"""The time limit of one file."""
FILE_HOST = "files.slack.com"


class FetchedFile(Struct, frozen=True):
    """A file of a question."""

    name: str
    mimetype: str
    size: int
    content: str
    """Its bytes in base64."""


class Luggage(Struct, frozen=True):
    """The files of a question that were fetched, and sentences about the others."""

    files: tuple[FetchedFile, ...] = ()
    notes: tuple[str, ...] = ()


class _LeftOut(Exception):
    """Raised for a file that is left out; the text is the reason."""


def size_of(turn: Turn) -> int:
    """Return the most bytes that fetch() reads for a question."""
    return sum(map(_most_of, turn.files[:MOST_FILES]))


def _most_of(file: dict[str, Any]) -> int:
    """Return the most bytes that are read of a file; 0 for one that is too large."""
    size, most = file.get("size"), settings.A2A_ATTACHMENT_BYTES
    if not isinstance(size, int):
        return most
    return min(max(size, 0) + GROWTH, most) if size <= most else 0


async def fetch(turn: Turn) -> Luggage:
    """Return the files of a question. Raises SlackAway if Slack gives no answer."""
    files: list[FetchedFile] = []
    notes: list[str] = []
    for number, file in enumerate(turn.files):
        name = str(file.get("name") or "a file")[:200]
        try:
            if number >= MOST_FILES:
                raise _LeftOut(f"a question may have {MOST_FILES} files")
            content = await _fetch(turn.token, file)
        except _LeftOut as reason:
            notes.append(f"_I have left out {name}: {reason}._")
            continue
        media = str(file.get("mimetype") or "")
        files.append(FetchedFile(name, media, len(content), await _write(content)))
    return Luggage(tuple(files), tuple(notes))


async def _fetch(token: str, file: dict[str, Any]) -> bytes:
    """Return the bytes of a file. Raises _LeftOut and SlackAway."""
    url, most = str(file.get("url") or ""), _most_of(file)
    if not most:
        raise _LeftOut(f"it has {_show(file['size'])}, and I take {_show(settings.A2A_ATTACHMENT_BYTES)} at most")
    if urlsplit(url).hostname not in {FILE_HOST, urlsplit(settings.A2A_SLACK_API).hostname}:
        raise _LeftOut("it is not stored in Slack")
    try:
        policy.target(url)
        async with (
            asyncio.timeout(SECONDS),
            dialling.client(seconds=10.0, most_read=most + 65_536) as client,
            client.stream("GET", url, headers=UNCOMPRESSED | {"Authorization": f"Bearer {token}"}) as response,
        ):
            _check(response, str(file.get("mimetype") or ""))
            return await read_body(response, most)
    except TooLarge:
        raise _LeftOut(f"it has more than {_show(most)}") from None
    except policy.Blocked:
        raise _LeftOut("it is not stored in Slack") from None
    except (httpx.HTTPError, policy.Unknown, TimeoutError) as error:
        raise SlackAway(f"a file: {type(error).__name__}") from None


async def _write(content: bytes) -> str:
    """Return bytes in base64."""
    return await off_loop(write_base64, content) if len(content) > LARGE else write_base64(content)


def _check(response: httpx.Response, media: str) -> None:
    """Check that the response has the file. Raises _LeftOut and SlackAway."""
    if response.status_code == 429 or response.status_code >= 500:
        raise SlackAway(f"a file: HTTP {response.status_code}")
    # Without the scope files:read, Slack answers with the page of its login.
    is_page = response.headers.get("Content-Type", "").startswith("text/html") and media != "text/html"
    if response.status_code != 200 or is_page:
        raise _LeftOut("I may not read it")


def _show(size: int) -> str:
    return f"{size / 1_000_000:.1f} MB"
