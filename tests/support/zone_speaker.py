"""A speaker of zones, which gives answers back in the words of the story: those of A2A 1.0."""

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from a2a.dialects import v1_0
from a2a.errors import ALL
from tests.support.speaker import Json, Speaker

TOKEN = "xoxb-never-stored-anywhere"
CODES = {error.reason: v1_0.DIALECT.column[error].number for error in ALL}
"""The codes of A2A by the reasons of errors."""
_IDS = "each call needs an id, so there are no notifications"
_STREAMS = "zones have no streams"
_LISTS = "zones have no lists"
_HISTORY = "an outcome has no history"
_WEBHOOKS = "zones have no webhooks"
_OUTCOME = "a task that fails is an error, and no task"
UNTOLD = {
    "a_batch_is_answered_in_its_order_without_its_notifications": _IDS,
    "a_notification_is_done_and_not_answered": _IDS,
    "a_budget_is_the_most_that_a_task_may_cost": _OUTCOME,
    "a_budget_of_a_batch_is_that_of_each_member": _OUTCOME,
    "a_wrong_context_for_a_task_is_refused_with_the_field": "calls name a thread, and no context",
    "versions_are_held_to": "zones have no versions",
    "extensions_are_asked_for_activated_and_told": "zones have no extensions",
    "a_required_extension_is_demanded_with_the_code_of_the_version": "zones have no extensions",
    "media_types_that_do_not_fit_are_refused_both_ways": "calls do not name the media types that they accept",
    "another_tenant_is_as_unknown_as_another_task": "params name no tenant",
    "a_small_file_comes_back_inline_and_a_large_one_as_a_link": _HISTORY,
    "a_stream_links_to_the_files_that_an_agent_makes": _STREAMS,
    "a_direct_reply_is_a_message_without_a_task": "a call always has a task",
    "a_history_is_as_long_as_it_was_asked_for": _HISTORY,
    "lists_go_page_by_page_through_the_callers_own": _LISTS,
    "a_task_at_work_is_canceled_once": "no method cancels",
    "a_stream_shows_the_task_and_then_every_event_in_order": _STREAMS,
    "many_small_chunks_fold_to_the_whole_text": _STREAMS,
    "a_second_client_joins_in_the_middle_and_sees_the_same_end": _STREAMS,
    "a_client_that_lost_its_stream_comes_back_with_its_last_event": _STREAMS,
    "a_last_event_that_is_no_number_is_refused_before_anything_is_done": _STREAMS,
    "the_stream_of_a_send_ends_with_a_question_and_that_of_a_subscription_in_0_x_alone": _STREAMS,
    "a_client_that_comes_back_after_its_question_was_answered_misses_nothing": _STREAMS,
    "the_stream_of_a_follow_up_begins_where_it_was_said": _STREAMS,
    "missing_credentials_leave_a_stream_open": _STREAMS,
    "a_webhook_is_registered_read_listed_and_removed": _WEBHOOKS,
    "the_webhooks_of_others_are_told_in_the_bytes_of_a_missing_task": _WEBHOOKS,
    "a_webhook_that_may_not_be_is_refused_with_its_field": _WEBHOOKS,
    "a_webhook_that_comes_after_the_end_hears_of_the_end_once": _WEBHOOKS,
    "a_webhook_that_comes_with_a_message_gets_the_whole_story": _WEBHOOKS,
}
STATES = {"success": "completed", "accepted": "working", "input_required": "input_required"}


@dataclass(kw_only=True)
class ZoneSpeaker(Speaker):
    """Zones over JSON-RPC."""

    names: dict[str, str] = field(
        default_factory=lambda: {
            "send": "execute_task",
            "execute": "execute_task",
            "get": "get_task",
            "card": "get_agent_card",
            "nope": "execute_nothing",
        }
    )
    statuses_tell = True
    traits: ClassVar[frozenset[str]] = frozenset({"card"})
    untold: ClassVar[Mapping[str, str]] = UNTOLD
    lacks: ClassVar[frozenset[str]] = frozenset({"stream", "subscribe", "cancel", "list", "push"})
    reason_of_ended = "TASK_ENDED"

    def call(self, wish: str, params: Any) -> Json:
        if isinstance(params, dict) and "id" in params:
            params = {("task_id" if name == "id" else name): value for name, value in params.items()}
        return super().call(wish, params)

    def sending(
        self,
        text: str,
        *,
        agent: str | None = None,
        task: str | None = None,
        now: bool = False,
        id: str | None = None,
        **more: Any,
    ) -> Json:
        wire: Json = {"channel": "C1", "text": text, "bot_token": TOKEN, "wait": not now}
        members = {"agent": agent, "task_id": task, "idempotency_key": id}
        return wire | {name: value for name, value in members.items() if value}

    def referring(self, url: str) -> tuple[Json, str]:
        return self.sending("", agent="echo") | {"attachments": [{"url": url}]}, "attachments"

    def attaching(self, content: bytes, media_type: str, name: str = "file") -> Json:
        attachment = {"name": name, "mimetype": media_type, "content": b64encode(content).decode()}
        return self.sending("") | {"attachments": [attachment]}

    def state(self, status: Json) -> str:
        return str(status["state"])

    def sent(self, result: Json) -> tuple[str, Json]:
        return "task", result

    def is_task(self, task: Json) -> None:
        assert task["id"]

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        if "error" in answer:
            error = answer["error"]
            return answer | {"error": error | {"code": CODES[error["data"]["reason"]]}}
        if "status" not in answer["result"]:
            return answer
        return answer | {"result": _translated(answer["result"])}


def _translated(result: Json) -> Json:
    """Return a result as a task of A2A. The question of an agent is the message of the status."""
    state, text = STATES[result["status"]], result["response_text"]
    message = {"message": {"role": "ROLE_AGENT", "parts": [{"text": text}]}} if state == "input_required" else {}
    artifacts = [{"artifactId": "text", "parts": [{"text": text}]}] if text and not message else []
    return {"id": result["task_id"], "contextId": "", "status": {"state": state} | message, "artifacts": artifacts}
