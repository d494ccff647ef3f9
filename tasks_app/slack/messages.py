"""The messages of one reply in a thread of Slack: posted once, and then edited."""

import logging
from collections.abc import Sequence
from functools import partial
from typing import Any

from tasks_app.slack import questions
from tasks_app.slack.lane import ask
from tasks_app.slack.questions import Turn
from tasks_app.slack.web_api import SlackRefused, WebApi

log = logging.getLogger(__name__)
EVENT = "taskdesk_reply"
"""The type of the metadata of our messages."""
PAGE, PAGES = 200, 5
"""Messages of a thread that are read at once, and pages of them."""
GONE = frozenset({"message_not_found", "cant_update_message", "thread_not_found", "edit_window_closed"})
"""Refusals of an edit after which the message stays as it is."""


class Messages:
    """The messages of the reply of one turn.

    Slack has no idempotency key for messages. So the row says that a posting begins, and when its end is unknown, Slack
    is asked for the message before it is posted again.
    """

    def __init__(self, turn: Turn, api: WebApi) -> None:
        self.turn = turn
        self.api = api
        self.posts = list(turn.posts)
        self.sends = turn.sends
        self.texts: dict[str, str] = {}
        """The text of each message, as far as this turn has sent it."""

    async def show(self, pieces: Sequence[str]) -> None:
        """Have the messages say these texts. Raises SlackAway, SlackRefused and Lost."""
        for number, piece in enumerate(pieces):
            if number == len(self.posts):
                await self._post(number, piece)
            elif self.texts.get(self.posts[number]) != piece:
                await self._edit(self.posts[number], piece)

    async def _post(self, number: int, text: str) -> None:
        if self.sends > number and (ts := await self._find(number)) is not None:
            await self._add(ts)
            await self._edit(ts, text)
            return
        await ask(partial(questions.begin_post, self.turn, number + 1))
        self.sends = number + 1
        body = {
            "channel": self.turn.channel,
            "thread_ts": self.turn.thread,
            "text": text,
            "metadata": {"event_type": EVENT, "event_payload": self._mark(number)},
            "unfurl_links": False,
            "unfurl_media": False,
        }
        answer = await self._call("chat.postMessage", body, self._place)
        ts = str(answer.get("ts", ""))[:32]
        await self._add(ts)
        self.texts[ts] = text

    async def _add(self, ts: str) -> None:
        self.posts.append(ts)
        await ask(partial(questions.add_posts, self.turn, list(self.posts)))

    async def _edit(self, ts: str, text: str) -> None:
        body = {"channel": self.turn.channel, "ts": ts, "text": text}
        try:
            await self._call("chat.update", body, self._place, ("chat.update", self.turn.team_id))
        except SlackRefused as error:
            if str(error) not in GONE:
                raise
            log.info("question %s: a message of its reply cannot be edited: %s", self.turn.id, error)
        self.texts[ts] = text

    async def _find(self, number: int) -> str | None:
        """Return the message of the reply with that number, if it is in the thread."""
        cursor = ""
        for _ in range(PAGES):
            body = {
                "channel": self.turn.channel,
                "ts": self.turn.thread,
                "oldest": self.turn.ts,
                "include_all_metadata": True,
                "limit": PAGE,
                "cursor": cursor,
            }
            try:
                answer = await self._call("conversations.replies", body, ("conversations.replies", self.turn.team_id))
            except SlackRefused as error:
                log.warning("question %s: a message may come twice, its thread is unreadable: %s", self.turn.id, error)
                return None
            for message in answer.get("messages") or ():
                metadata = message.get("metadata") or {}
                if metadata.get("event_type") == EVENT and metadata.get("event_payload") == self._mark(number):
                    return str(message["ts"])
            cursor = str((answer.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor:
                break
        return None

    @property
    def _place(self) -> tuple[str, str]:
        return self.turn.team_id, self.turn.channel

    def _mark(self, number: int) -> dict[str, Any]:
        return {"question": self.turn.id, "number": number}

    async def _call(self, method: str, body: dict[str, Any], *keys: tuple[str, str]) -> dict[str, Any]:
        return await self.api.call(self.turn.token, method, body, *keys)
