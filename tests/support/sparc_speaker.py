"""A speaker of SPARC: A2A 0.2 at another path, whose events have names and whose errors have data."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from a2a.errors import ALL
from tests.support.rpc_speakers import OldSpeaker
from tests.support.speaker import Json

NAMES = {
    "phase": "sparc/phase/set",
    "execute": "sparc/execute",
    "workflow": "sparc/workflow/get",
    "capabilities": "agent/capabilities",
    "batch": "batchtools/execute",
    "store": "memory/store",
    "retrieve": "memory/retrieve",
    "keys": "memory/list",
    "forget": "memory/delete",
    "search": "memory/search",
}
SENTENCES = {error.reason: error.sentence for error in ALL}
NO_TASK = "Task not found or expired"
"""The details of SPARC for a task that is not found, where A2A has no detail."""


@dataclass(kw_only=True)
class SparcSpeaker(OldSpeaker):
    """A client of SPARC, which looks at the data of each error."""

    path: str = "/sparc"
    endpoint = "sparc"
    always_has_reason = True
    versions: ClassVar[frozenset[str]] = frozenset({"0.2", "0.2.9", ""})
    other_version_code = -32009
    webhook_path = "config."

    def __post_init__(self) -> None:
        self.names = self.names | NAMES

    @property
    def has_card(self) -> bool:
        return False

    def webhook_of(self, task: str, url: str, **more: Any) -> Json:
        return {"taskId": task, "config": self.webhook(url, **more)}

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        if isinstance(answer, list):
            return super().answer_of(status, [self._translated(member) for member in answer], wire)
        return super().answer_of(status, self._translated(answer), wire)

    def _translated(self, answer: Json) -> Json:
        """Return an answer whose error has the message and the detail of A2A, and no id of its call."""
        if "error" not in answer:
            return answer
        assert answer["error"]["data"]["requestId"] == answer["id"]
        return answer | {"error": in_words_of_a2a(answer["error"])}


OTHERS = "a method that SPARC lacks is answered in another version of A2A, which the same address speaks"


@dataclass(kw_only=True)
class PinnedSparcSpeaker(SparcSpeaker):
    """A client of SPARC where other languages are too, by a key that is pinned to it."""

    path: str = "/jsonrpc"
    untold: ClassVar[Mapping[str, str]] = {
        "versions_are_held_to": "a version wins over the pin of a key",
        "a_batch_is_answered_in_its_order_without_its_notifications": OTHERS,
        "what_is_not_offered_is_refused_with_its_code": OTHERS,
        "the_card_for_callers_who_are_known_is_theirs_by_scope_and_version": OTHERS,
    }


def in_words_of_a2a(error: Json) -> Json:
    """Return an error with the message and the detail of A2A, and without the id of its call."""
    data = {name: value for name, value in error["data"].items() if name != "requestId"}
    sentence, details = SENTENCES[data["reason"]], data.pop("details")
    message = details if details.startswith(f"{sentence}:") else sentence
    if details not in {message, NO_TASK}:
        data["detail"] = details
    return error | {"message": message, "data": data}
