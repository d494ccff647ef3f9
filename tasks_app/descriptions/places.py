"""The paths of HTTP that are no routes of a language, as rows of OpenAPI. A new path of ours is a new row."""

from typing import Any

from a2a.descriptions.components import Components
from a2a.descriptions.openapi import Place
from a2a.dialects import adr, v0_2, v0_3, v1_0
from a2a.dialects.acp import language as acp
from a2a.dialects.acp.card import AgentCard
from a2a.dialects.schemas import adr as adr_types
from a2a.dialects.schemas import answers_0_x, answers_1_0, cards
from a2a.types import Json
from tasks_app.callers.scopes import READ, WRITE

ANY = ""
"""The scope of a path for any caller. A call of a method needs that of the method besides."""
KEY = {401: "The key is absent or not valid."}
NOT_MODIFIED = {304: "The client has it already."}
CARD = {200: "The card.", 400: "There is no card in the language of the query.", **NOT_MODIFIED}


def _card(components: Components) -> Json:
    """Return the schema of a public card, in any version."""
    types: list[tuple[Any, Any]] = [
        (v1_0.DIALECT, answers_1_0.AgentCard),
        (v0_3.DIALECT, answers_0_x.AgentCard),
        (v1_0.DIALECT, cards.HybridCard),
    ]
    return {"anyOf": [components.of(language, card) for language, card in types]}


def _old_card(components: Components) -> Json:
    return components.of(v0_2.DIALECT, answers_0_x.AgentCard)


def _old_or_acp_card(components: Components) -> Json:
    return {"anyOf": [_old_card(components), components.of(acp.LANGUAGE, AgentCard)]}


PLACES = (
    Place(
        verb="POST",
        path="/jsonrpc",
        summary="Call a method over JSON-RPC: see /openrpc.json",
        scope=ANY,
        answers={200: "The answer.", 204: "The call was a notification.", **KEY},
        body={},
    ),
    Place(
        verb="POST",
        path="/a2a",
        summary="Call a method of A2A 0.3 with the errors of VAPORA: see /a2a/openrpc.json",
        scope=ANY,
        answers={200: "The answer.", 204: "The call was a notification.", 404: "There is no such task.", **KEY},
        body={},
    ),
    Place(
        verb="POST",
        path="/sparc",
        summary="Call a method of SPARC: see /sparc/openrpc.json",
        scope=ANY,
        answers={200: "The answer.", 204: "The call was a notification.", **KEY},
        body={},
    ),
    Place(
        verb="POST",
        path="/invoke",
        summary="Call an agent or a skill by its name, and wait for the outcome (ADR-002)",
        scope=WRITE.scope,
        answers={
            200: "The answer.",
            204: "The call was a notification.",
            400: "The call is not valid, or has no X-Request-ID.",
            402: "The budget is below the minimum expected cost.",
            408: "The outcome was not there in time.",
            409: "The X-Request-ID was used before with another call.",
            **KEY,
        },
        schema=lambda components: components.of(adr.LANGUAGE, adr_types.Answer),
        body={"$ref": "/schemas/adr-002/invoke.json#/$defs/Call"},
    ),
    Place(
        verb="POST",
        path="/invoke/stream",
        summary="Call an agent or a skill by its name, and follow its output as bare text (ADR-002)",
        scope=WRITE.scope,
        answers={200: "The events.", 400: "The call is not valid, or has no X-Request-ID.", **KEY},
        media="text/event-stream",
        body={"$ref": "/schemas/adr-002/invoke.json#/$defs/Call"},
    ),
    Place(
        verb="GET",
        path="/card",
        summary="Return the card of ADR-002",
        scope=None,
        answers={200: "The card.", 404: "There is no such agent.", **NOT_MODIFIED},
        schema=lambda components: components.of(adr.LANGUAGE, adr_types.AgentCard),
    ),
    Place(
        verb="GET",
        path="/schemas/adr-002/{file}",
        summary="Return a JSON Schema of ADR-002: card.json, negotiate.json, invoke.json or errors.json",
        scope=None,
        answers={200: "The schema.", 404: "There is no such schema.", **NOT_MODIFIED},
    ),
    Place(
        verb="GET",
        path="/schemas/zones/{file}",
        summary="Return a JSON Schema of zones: execute_task.json, get_task.json or errors.json",
        scope=None,
        answers={200: "The schema.", 404: "There is no such schema.", **NOT_MODIFIED},
    ),
    Place(
        verb="POST",
        path="/slack/events",
        summary="Take an event of Slack, which Slack signs",
        scope=None,
        answers={200: "The event is taken, or ignored.", 401: "The signature is wrong."},
    ),
    Place(
        verb="GET",
        path="/.well-known/agent-card.json",
        summary="Return the card of 1.0, of 0.3, or of both in one, by A2A-Version",
        scope=None,
        answers=CARD,
        schema=_card,
    ),
    Place(
        verb="GET",
        path="/.well-known/agent.json",
        summary="Return the card of 0.2, or with ?language=acp that of ACP",
        scope=None,
        answers=CARD,
        schema=_old_or_acp_card,
    ),
    Place(
        verb="GET",
        path="/agent/authenticatedExtendedCard",
        summary="Return the extended card of 0.2",
        scope=READ.scope,
        answers={200: "The card.", **KEY},
        schema=_old_card,
    ),
    Place(
        verb="GET",
        path="/.well-known/jwks.json",
        summary="Return the public keys that verify cards",
        scope=None,
        answers={200: "A JSON Web Key Set.", **NOT_MODIFIED},
    ),
    Place(
        verb="GET",
        path="/agents/",
        summary="Return the agents of this server",
        scope=None,
        answers={200: "The catalogue.", **NOT_MODIFIED},
    ),
    Place(
        verb="GET",
        path="/files/{file}/{name}",
        summary="Return a file by the link in an answer, which expires",
        scope=None,
        answers={200: "The bytes.", 206: "One range of the bytes.", 404: "The link is not valid any more."},
        media="application/octet-stream",
        query=("until", "signature"),
    ),
    Place(
        verb="POST",
        path="/links",
        summary="Return a link to the stream of a task, for EventSource",
        scope=READ.scope,
        answers={200: "The link.", 400: "The wish is not valid.", 404: "There is no such task.", **KEY},
        body={
            "type": "object",
            "required": ["taskId"],
            "properties": {"taskId": {"type": "string"}, "seconds": {}, "version": {"type": ["string", "null"]}},
        },
    ),
    Place(
        verb="GET",
        path="/links/{task}",
        summary="Follow a task by a link",
        scope=None,
        answers={200: "The events.", 204: "The client has seen the end.", 403: "The link is not valid any more."},
        media="text/event-stream",
        query=("signature", "afterSequence"),
    ),
    Place(
        verb="GET",
        path="/stream/{call}",
        summary="Follow the task of a call of SPARC by the id of the call",
        scope=READ.scope,
        answers={200: "The events.", 404: "The caller has no call with that id, or it has no task.", **KEY},
        media="text/event-stream",
    ),
    Place(
        verb="POST",
        path="/ws/ticket",
        summary="Return a ticket that opens one WebSocket connection",
        scope=ANY,
        answers={200: "The ticket.", **KEY},
    ),
    Place(
        verb="GET",
        path="/openrpc.json",
        summary="Return what can be asked over JSON-RPC",
        scope=READ.scope,
        answers={200: "A document of OpenRPC.", **NOT_MODIFIED, **KEY},
    ),
    Place(
        verb="GET",
        path="/openapi.json",
        summary="Return this description",
        scope=READ.scope,
        answers={200: "A document of OpenAPI.", **NOT_MODIFIED, **KEY},
    ),
    Place(
        verb="GET",
        path="/healthz",
        summary="Return whether the process runs",
        scope=None,
        answers={200: "It runs."},
        media="",
    ),
    Place(
        verb="GET",
        path="/readyz",
        summary="Return whether the process can work",
        scope=None,
        answers={200: "It can work.", 503: "It cannot work, with the reasons."},
    ),
    Place(
        verb="GET",
        path="/health",
        summary="Return whether the process can work, with its version, its uptime and its load",
        scope=None,
        answers={200: "It can work.", 503: "It cannot work, with the reasons."},
    ),
    Place(
        verb="GET",
        path="/metrics",
        summary="Return the counters of the process to operators, by a token of theirs",
        scope=ANY,
        answers={
            200: "The counters in the text format of Prometheus, or in JSON where Accept prefers it.",
            429: "Too many wrong tokens.",
            **KEY,
        },
        media="text/plain",
    ),
)
