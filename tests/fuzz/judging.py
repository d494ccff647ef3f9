"""The rules by which an answer is a valid one to its call."""

import json
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from a2a.dialects.acp.language import LANGUAGE as ACP
from a2a.dialects.acp.schema import schema
from a2a.dialects.schemas.adr import SCHEMAS
from tests.fuzz.asking import Answer
from tests.fuzz.calls import PATHS, Call
from tests.support.descriptions import Json, rest_description, rpc_description

INTERNALS = (b"Traceback (most recent call last)", b'File \\"/', b'File "/', b"site-packages")
"""Parts of answers that show the inside of the server."""
INTERNAL_ERROR = -32603
ENVELOPED = ("/jsonrpc", "/rpc", "/", "/a2a", "/sparc")
UNAVAILABLE = 503
BARE_TEXT = "/invoke/stream"
NAMED = ("/invoke", BARE_TEXT, "/negotiate")
"""Paths of ADR-002."""


def fault(call: Call, answer: Answer) -> str:
    """Return what is wrong with an answer; empty if nothing is."""
    if answer.status >= 500 and not _is_away(answer):
        return f"the status is {answer.status}: {answer.content[:2_000]!r}"
    if shown := next((part for part in INTERNALS if part in answer.content), None):
        return f"the answer has {shown!r}: {answer.content[:2_000]!r}"
    if answer.media == "text/event-stream":
        return _fault_of_stream(answer.content, is_text=call.path.endswith(BARE_TEXT))
    if call.verb == "HEAD":
        return ""  # The server leaves the content out.
    if answer.status == 204:
        return f"an answer without content has {answer.content!r}" if answer.content else ""
    if answer.media in {"application/json", "application/a2a+json"}:
        try:
            wire = json.loads(answer.content)
        except ValueError:
            return f"no JSON: {answer.content[:500]!r}"
        return _fault_of_json(call, answer, wire)
    return ""


def _is_away(answer: Answer) -> bool:
    """Return whether it is the documented answer of a server that is busy or ends: 503, with the time to come back."""
    return answer.status == UNAVAILABLE and ("retry-after" in answer.headers or b"problems" in answer.content)


def _fault_of_json(call: Call, answer: Answer, wire: Any) -> str:
    is_named = call.verb == "POST" and call.path.removeprefix("/agents/echo") in NAMED
    if is_named and (wrong := _fault_of_adr(call, answer, wire)):
        return wrong
    has_status = call.path in PATHS["vapora"]  # Each error of VAPORA has an HTTP status.
    if call.verb != "POST" or not call.path.endswith(ENVELOPED) or not (answer.status == 200 or has_status):
        return _fault_of_page(call, answer, wire)
    answers = wire if isinstance(wire, list) else [wire]
    if not answers or not all(map(is_answer, answers)):
        return f"no answer of JSON-RPC: {wire}"
    if call.method and not isinstance(wire, list):
        try:
            rpc_description(call.endpoint, call.version).check_answer(call.method, wire)
        except AssertionError as error:
            return f"not as OpenRPC says: {error}"
        return _fault_of_acp(call.method, wire) if call.method in ACP.methods else ""
    return ""


def _fault_of_acp(method: str, wire: Any) -> str:
    """Return what is wrong with an answer by the published schema of ACP."""
    name = "error" if "error" in wire else f"{method}.answer"
    definitions = _acp_schema()["$defs"]
    wrong = best_match(Draft202012Validator({"$ref": f"#/$defs/{name}", "$defs": definitions}).iter_errors(wire))
    return "" if wrong is None else f"not as the schema of ACP says: {wrong.json_path}: {wrong.message}"


@cache
def _acp_schema() -> Json:
    return schema()


def _fault_of_adr(call: Call, answer: Answer, wire: Any) -> str:
    """Return what is wrong with an answer by the published schemas of ADR-002."""
    negotiated = call.path.endswith("/negotiate")
    file, name = ("negotiate", "NegotiateAnswer") if negotiated else ("invoke", "Answer")
    schema = {"$ref": f"#/$defs/{name}", "$defs": SCHEMAS[file]["$defs"]} if answer.status == 200 else SCHEMAS["errors"]
    wrong = best_match(Draft202012Validator(schema).iter_errors(wire))
    return "" if wrong is None else f"not as the schema says: {wrong.json_path}: {wrong.message}"


def _fault_of_page(call: Call, answer: Answer, wire: Any) -> str:
    """Return what is wrong with an answer by the description of its path, for paths that have one."""
    path = call.path.removeprefix("/agents/echo").removeprefix("/home")
    operation = rest_description().operation(call.verb, path)
    response = (operation or {}).get("responses", {}).get(str(answer.status), {})
    if operation is None or answer.media not in response.get("content", {}):
        return ""
    try:
        rest_description().check_answer(call.verb, path, answer.status, answer.media, wire)
    except AssertionError as error:
        return f"not as OpenAPI says: {error}"
    return ""


def is_answer(wire: Any) -> bool:
    """Return whether it is a response of JSON-RPC 2.0, section 5."""
    if not isinstance(wire, dict) or wire.get("jsonrpc") != "2.0":
        return False
    if set(wire) == {"jsonrpc", "id", "result"}:
        return True
    error = wire.get("error")
    return set(wire) == {"jsonrpc", "id", "error"} and isinstance(error, dict) and _is_error(error)


def _is_error(error: Json) -> bool:
    return type(code := error.get("code")) is int and code != INTERNAL_ERROR and isinstance(error.get("message"), str)


def _fault_of_stream(content: bytes, *, is_text: bool) -> str:
    # Not splitlines, which also splits at U+0085 and U+2028: JSON may hold them.
    for line in content.decode().split("\n"):
        if line.startswith("event: error"):
            return f"a stream ends with an error: {content[-500:]!r}"
        if not is_text and line.startswith("data: ") and not isinstance(json.loads(line.removeprefix("data: ")), dict):
            return f"an event is no object: {line}"
    return ""
