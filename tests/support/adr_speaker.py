"""A speaker of ADR-002, for walks over all methods: its calls name no task, so it tells no story."""

import json
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from tests.support.speaker import Json, Speaker


@dataclass(kw_only=True)
class AdrSpeaker(Speaker):
    """A client of ADR-002. Each of its three methods has a path, and the method of a call is the name of an agent."""

    names: dict[str, str] = field(default_factory=dict)
    has_envelope = False
    statuses_tell = True

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
