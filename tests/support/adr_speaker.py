"""A speaker of ADR-002, which gives outcomes back in the words of the story: those of A2A 1.0."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar
from uuid import uuid4

from jsonschema import Draft202012Validator

from a2a.dialects import v1_0
from a2a.dialects.schemas.adr import SCHEMAS
from a2a.errors import ALL
from tests.support.doors import Reply
from tests.support.speaker import Json, Speaker

CODES = {error.reason: v1_0.DIALECT.column[error].number for error in ALL}
"""The codes of A2A by the reasons of errors. Reasons of ADR-002's own have the codes of JSON-RPC."""
_TASKS = "calls name no task, so none is read, continued, listed or canceled"
_STREAMS = "a stream is bare text, without tasks and states"
_ENVELOPE = "there are neither batches nor notifications"
_PARAMS = "the params of a call are the arguments of the agent alone"
_WEBHOOKS = "there are no webhooks"
UNTOLD = {
    "a_batch_is_answered_in_its_order_without_its_notifications": _ENVELOPE,
    "a_notification_is_done_and_not_answered": _ENVELOPE,
    "a_budget_of_a_batch_is_that_of_each_member": _ENVELOPE,
    "a_budget_is_the_most_that_a_task_may_cost": "a task that fails is an error, and no task",
    "a_foreign_task_and_a_missing_one_are_told_in_the_same_bytes": _TASKS,
    "a_task_that_has_ended_takes_nothing_more": _TASKS,
    "a_wrong_context_for_a_task_is_refused_with_the_field": _TASKS,
    "the_card_for_callers_who_are_known_is_theirs_by_scope_and_version": "no method returns a card",
    "versions_are_held_to": "there are no versions",
    "a_repeated_message_is_one_task_and_another_content_is_a_conflict": "a header has the id, and a message has none",
    "extensions_are_asked_for_activated_and_told": "there are no extensions",
    "a_required_extension_is_demanded_with_the_code_of_the_version": "there are no extensions",
    "media_types_that_do_not_fit_are_refused_both_ways": _PARAMS,
    "another_tenant_is_as_unknown_as_another_task": _PARAMS,
    "a_small_file_comes_back_inline_and_a_large_one_as_a_link": _PARAMS,
    "a_stream_links_to_the_files_that_an_agent_makes": _PARAMS,
    "nobody_can_name_a_file_of_the_server": _PARAMS,
    "a_message_that_does_not_wait_is_answered_at_once": "a call waits for its outcome",
    "a_direct_reply_is_a_message_without_a_task": "a direct reply is a text without a context",
    "a_history_is_as_long_as_it_was_asked_for": _TASKS,
    "an_interview_takes_several_turns_in_one_task": _TASKS,
    "lists_go_page_by_page_through_the_callers_own": _TASKS,
    "a_task_at_work_is_canceled_once": _TASKS,
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


@dataclass(kw_only=True)
class AdrSpeaker(Speaker):
    """A client of ADR-002. Each of its three methods has a path, and the method of a call is the name of an agent."""

    names: dict[str, str] = field(default_factory=lambda: {"send": "invoke", "stream": "invoke/stream"})
    has_envelope = False
    statuses_tell = True
    untold: ClassVar[Mapping[str, str]] = UNTOLD
    lacks: ClassVar[frozenset[str]] = frozenset({"get"})

    def call(self, wish: str, params: Any) -> Json:
        """Return the call. An unknown method is a call of an unknown agent."""
        if wish == "nope":
            return super().call("invoke", {"method": wish, "params": params})
        return super().call(wish, params)

    def sending(self, text: str, *, agent: str | None = None, **more: Any) -> Json:
        return {"method": agent or "echo", "params": {"text": text}}

    def negotiating(self, agent: str | None) -> Json:
        return {"capabilities": [agent or "echo"], "budget_usd": 1}

    def request_of(self, wire: Json) -> tuple[str, str, bytes]:
        """Return the verb, the path and the body of a call. A call without an id is a notification."""
        method, params = wire["method"], wire["params"]
        own = {name: wire[name] for name in ("jsonrpc", "id") if name in wire}
        return "POST", f"/{method}", json.dumps(params if method == "negotiate" else own | params).encode()

    def headers(self, **more: str) -> dict[str, str]:
        """Return headers with an id of the call, which no other call has."""
        return super().headers(**({"X-Request-ID": str(uuid4())} | more))

    def check_answer(self, wire: Any, answer: Any, headers: dict[str, str], reply: Reply) -> None:
        """Check an answer by the published schemas of ADR-002. An event is bare text, which has no schema."""
        own = {"$ref": "#/$defs/Answer", "$defs": SCHEMAS["invoke"]["$defs"]}
        Draft202012Validator(own if reply.status == 200 else SCHEMAS["errors"]).validate(answer)

    def state(self, status: Json) -> str:
        return str(status["state"])

    def is_task(self, task: Json) -> None:
        assert task["id"]
        assert task["contextId"]

    def sent(self, result: Json) -> tuple[str, Json]:
        return "task", result

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        """Return an answer with a task of A2A, or with the code that A2A has for the reason of an error."""
        if "error" in answer:
            error = answer["error"]
            return answer | {"error": error | {"code": CODES.get(error["data"]["reason"], error["code"])}}
        return answer | {"result": _translated(answer["result"])}


def _translated(result: Json) -> Json:
    artifacts = [{"artifactId": "text", "parts": [{"text": result["text"]}]}] if result["text"] else []
    status = {"state": result["status"]}
    return {"id": result["task_id"], "contextId": result["context_id"], "status": status, "artifacts": artifacts}
