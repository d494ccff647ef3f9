"""Requests of Slack, as slack-bolt reads them: the challenge of a new address, events of the bot itself, and questions.

Bolt runs on the loop, because its listeners only read. The signature was checked before (signing.py), and what a
question asks for is done by the responder, after the acknowledgement.
"""

import logging
import re
from functools import cache
from typing import Any

import orjson
from msgspec import Struct
from slack_bolt import Ack, App, BoltContext, BoltRequest
from slack_bolt.authorization import AuthorizeResult

from tasks_app.slack import mrkdwn
from tasks_app.slack.arrivals import Arrival
from tasks_app.slack.workspaces import Installation

QUESTION, HOME = "taskdesk_question", "taskdesk_home"
"""The places of the question and of its workspace in the context of Bolt."""
SUBTYPES = frozenset({"", "file_share", "thread_broadcast"})
"""The subtypes of messages that are questions. Others tell of edits, deletions, and people who come and go."""
MOST_FILES = 50
_ID = re.compile(r"[A-Za-z0-9._-]+")


class Reading(Struct, frozen=True):
    """The answer of Bolt to a request, and the question that the request brings."""

    status: int
    body: str
    media: str
    question: Arrival | None = None


def read(members: dict[str, Any], home: Installation | None) -> Reading:
    """Read a request, of which these are the members that are read (forms.py). Its signature must have been checked."""
    request = BoltRequest(
        body=orjson.dumps(members).decode(), context={HOME: home}, headers={"content-type": ["application/json"]}
    )
    response = _app().dispatch(request)
    media = str((response.headers.get("content-type") or ["text/plain"])[0])
    question = request.context.get(QUESTION)
    return Reading(response.status, response.body or "", media, question)


@cache
def _app() -> App:
    app = App(
        name="taskdesk",
        logger=logging.getLogger("slack_bolt"),
        signing_secret="-",  # noqa: S106  # signing.py has checked the signature, with the secret of the workspace
        request_verification_enabled=False,
        ssl_check_enabled=False,
        process_before_response=True,
        authorize=_authorize,
    )
    app.event("app_mention")(_note_mention)
    app.event("message")(_note_message)
    app.event(re.compile(".*"))(_ignore)
    return app


def _authorize(context: BoltContext) -> AuthorizeResult:
    """Return the ids of the bot, by which Bolt knows its own messages. The token stays out of Bolt."""
    home: Installation = context[HOME]
    ids = {"bot_user_id": home.bot_user_id or None, "bot_id": home.bot_id or None}
    return AuthorizeResult(enterprise_id=None, team_id=home.team_id, **ids)


def _note_mention(body: dict[str, Any], event: dict[str, Any], context: BoltContext, ack: Ack) -> None:
    context[QUESTION] = _question(body, event, context[HOME])
    ack()


def _note_message(body: dict[str, Any], event: dict[str, Any], context: BoltContext, ack: Ack) -> None:
    """Take a direct message. In channels the app answers only those who mention it."""
    if event.get("channel_type") == "im":
        context[QUESTION] = _question(body, event, context[HOME])
    ack()


def _ignore(ack: Ack) -> None:
    ack()


def _question(body: dict[str, Any], event: dict[str, Any], home: Installation) -> Arrival | None:
    """Return the question of an event; None for a message of a bot, or one that is no question."""
    user, channel, ts = event.get("user"), event.get("channel"), event.get("ts")
    thread = event.get("thread_ts") or ts
    ids = (user, channel, ts, thread)
    if event.get("bot_id") or event.get("bot_profile") or (event.get("subtype") or "") not in SUBTYPES:
        return None
    if event.get("hidden") or user in {home.bot_user_id, "USLACKBOT"}:
        return None
    if not _is_id(body.get("event_id"), 64) or not all(_is_id(id, 32) for id in ids):
        return None
    text = event.get("text")
    return Arrival(
        event_id=str(body["event_id"]),
        kind=str(event.get("type")),
        channel=str(channel),
        thread=str(thread),
        ts=str(ts),
        user=str(user),
        text=mrkdwn.read(text, home.bot_user_id).replace("\0", "") if isinstance(text, str) else "",
        files=tuple(_file(file) for file in (event.get("files") or ())[:MOST_FILES] if isinstance(file, dict)),
        is_foreign=_is_foreign(event, home),
    )


def _is_id(value: Any, longest: int) -> bool:
    """Return whether a value can be an id of Slack."""
    return isinstance(value, str) and len(value) <= longest and _ID.fullmatch(value) is not None


def _is_foreign(event: dict[str, Any], home: Installation) -> bool:
    """Return whether the user belongs to another workspace, with which a channel is shared (Slack Connect)."""
    teams = (event.get("user_team"), event.get("source_team"))
    return any(isinstance(team, str) and team != home.team_id for team in teams)


def _file(file: dict[str, Any]) -> dict[str, Any]:
    url = "" if file.get("is_external") else file.get("url_private_download") or file.get("url_private")
    return {
        "name": str(file.get("name") or file.get("title") or "")[:200].replace("\0", ""),
        "mimetype": str(file.get("mimetype") or "")[:100].replace("\0", ""),
        "size": file["size"] if isinstance(file.get("size"), int) else None,
        "url": str(url or "")[:2_000].replace("\0", ""),
    }
