"""The members of Slack's requests that are read, with the kinds of value that Slack documents for them.

Bolt expects these kinds, and is given no other member: it would meet a value of another kind with a fault.
"""

from typing import Any

from msgspec import Struct

from a2a.params import check

CHALLENGE = "url_verification"
"""The type of the request by which Slack tries a new address."""
EVENT = "event_callback"
QUESTIONS = frozenset({"app_mention", "message"})
"""The types of events that can bring a question. Of others only the type is read."""


class _Challenge(Struct):
    type: str
    challenge: str


class _Event(Struct):
    type: str


class _Message(Struct):
    type: str
    user: str | None = None
    channel: str | None = None
    channel_type: str | None = None
    ts: str | None = None
    thread_ts: str | None = None
    subtype: str | None = None
    text: str | None = None
    files: list[dict[str, Any]] | None = None
    user_team: str | None = None
    source_team: str | None = None
    bot_id: Any = None
    bot_profile: Any = None
    hidden: Any = None


class _Callback(Struct):
    type: str
    event: _Event


class _MessageCallback(Struct):
    type: str
    event: _Message


def select(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a challenge or of an event that are read. Raises InvalidParams for a malformed one."""
    if payload["type"] == CHALLENGE:
        return _members(check(payload, _Challenge), _Challenge)
    event = check(payload, _Callback)["event"]
    form: type[Struct] = _Event
    if event["type"] in QUESTIONS:
        event, form = check(payload, _MessageCallback)["event"], _Message
    return {"type": EVENT, "event_id": payload.get("event_id"), "event": _members(event, form)}


def _members(value: dict[str, Any], form: type[Struct]) -> dict[str, Any]:
    return {name: value[name] for name in form.__struct_fields__ if name in value}
