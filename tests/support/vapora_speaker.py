"""A speaker of VAPORA: A2A 0.3 at another path, with one code for all errors of tasks, agents and callers."""

from dataclasses import dataclass
from typing import Any, ClassVar

from a2a.dialects import v0_3, vapora
from a2a.errors import ALL
from tests.support.rpc_speakers import OldSpeaker
from tests.support.speaker import Json

CODES = {error.reason: v0_3.DIALECT.column[error].number for error in ALL}
STATUSES = {error.reason: vapora.COLUMN[error].status for error in ALL}
JSON_RPC = {-32700, -32600, -32601, -32602, -32603}


@dataclass(kw_only=True)
class VaporaSpeaker(OldSpeaker):
    """A client of VAPORA, which gives errors back with the codes of A2A."""

    path: str = "/a2a"
    endpoint = "vapora"
    statuses_tell = True
    always_has_reason = True
    versions: ClassVar[frozenset[str]] = frozenset({"0.3", "0.3.0", ""})
    other_version_code = -32009
    absent_webhook = -32602

    def answer_of(self, status: int, answer: Any, wire: Any) -> Any:
        if isinstance(answer, list):
            assert status == 200, "a batch is 200, whatever its members are answered"
            return [self._translated(member) for member in answer]
        assert status == (STATUSES[answer["error"]["data"]["reason"]] if "error" in answer else 200)
        return self._translated(answer)

    def _translated(self, answer: Json) -> Json:
        assert {"jsonrpc", "id"} < answer.keys()
        if "error" not in answer:
            return answer
        error = answer["error"]
        assert error["code"] in JSON_RPC | {vapora.DOMAIN}
        return answer | {"error": error | {"code": CODES[error["data"]["reason"]]}}
