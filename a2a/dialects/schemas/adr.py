"""The JSON of ADR-002 as types: the card, negotiations, calls and errors. Calls are checked against them, and the
published JSON Schemas are made of them."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from a2a.params import Text, rule
from a2a.types import Json

SEMVER = r"^(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$"
"""The pattern of a version (Semantic Versioning 2.0.0)."""
Positive = Annotated[int, Meta(ge=1)]
Amount = Annotated[float, Meta(ge=0)]

# ---------------------------------------------------------------------- card


class Limits(Struct, kw_only=True):
    """The limits of a call: its size, its time and its cost."""

    max_input_tokens: Positive
    max_output_tokens: Positive
    max_latency_ms: Positive
    max_cost_per_invoke: Amount
    min_cost_per_invoke: Amount
    """The minimum expected cost. A call with a smaller budget is refused."""
    rate_limit_rpm: Positive | UnsetType = UNSET


class Privacy(Struct, kw_only=True):
    """The personal data that the agent works with, and how long it is stored."""

    pii: bool
    phi: bool
    data_retention_days: Annotated[int, Meta(ge=0)] | UnsetType = UNSET
    notes: str | UnsetType = UNSET


class Auth(Struct, kw_only=True):
    """The way to authenticate."""

    method: Literal["oidc", "api_key", "none", "oauth2", "mtls", "session"]
    issuer: str | UnsetType = UNSET
    audience: str | UnsetType = UNSET
    scopes: list[str] | UnsetType = UNSET


class Degradation(Struct, kw_only=True):
    """The treatment of a call that exceeds a limit."""

    on_timeout: str
    on_budget_exceeded: str


class AgentCard(Struct, kw_only=True):
    """The card of an agent."""

    id: Text
    version: Annotated[str, Meta(pattern=SEMVER)]
    description: str
    capabilities: Annotated[list[str], Meta(min_length=1)]
    inputs: Json
    outputs: Json
    limits: Limits
    privacy: Privacy
    auth: Auth
    degradation: Degradation
    signatures: list[Json] | UnsetType = UNSET
    """The signatures of the card (RFC 7515), as on the cards of A2A 1.0 (8.4)."""


# --------------------------------------------------------------- negotiation


MAX_CAPABILITIES = 1_000
"""Capabilities of one negotiation. Each is looked for among the skills of all agents, within the call."""


class NegotiateParams(Struct, kw_only=True):
    """The capabilities that a caller wants, and the most that it pays for one call."""

    capabilities: Annotated[list[Text], rule(maxItems=MAX_CAPABILITIES)] = []
    budget_usd: Amount | None = None


class Refused(Struct, kw_only=True):
    """A capability that a call would not get."""

    capability: str
    reason: str
    min_cost_usd: Amount | UnsetType = UNSET


class Limited(Struct, kw_only=True):
    """A capability whose calls end when they have cost the budget."""

    capability: str
    min_cost_usd: Amount
    max_cost_usd: Amount


class Limitations(Struct, kw_only=True, omit_defaults=True):
    """The differences from what was asked for; empty for an agreement."""

    refused: list[Refused] = []
    budget: list[Limited] = []


class NegotiateAnswer(Struct, kw_only=True):
    """The outcome of a negotiation."""

    accepted: bool
    outcome: Literal["agreement", "degradation", "refusal"]
    capabilities: list[str]
    """The capabilities that a call would get."""
    limitations: Limitations


# --------------------------------------------------------------------- calls


class InvokeParams(Struct, kw_only=True):
    """The name of an agent or a skill, and the arguments for it."""

    method: Text
    params: Json = {}


class Call(InvokeParams, kw_only=True):
    """A call of JSON-RPC at /invoke or /invoke/stream."""

    jsonrpc: Literal["2.0"]
    id: str | int | UnsetType | None = UNSET


class Outcome(Struct, kw_only=True):
    """The result of a call."""

    status: Literal["completed", "input_required", "auth_required"]
    """A call whose agent asks a question is answered with the question, and its task waits."""
    text: str
    """The text that the agent has given."""
    data: list[Any] | UnsetType = UNSET
    """The data that the agent has given, one value for each part."""
    files: list[Json] | UnsetType = UNSET
    """The files that the agent has given: `url` or `raw`, `filename` and `mediaType`."""
    question: str | UnsetType = UNSET
    task_id: str | UnsetType = UNSET
    """The id of the task in A2A; absent for an agent that replied without one."""
    context_id: str | UnsetType = UNSET


class Answer(Struct, kw_only=True):
    """The answer to a call."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    result: Outcome


# -------------------------------------------------------------------- errors


class Violation(Struct, kw_only=True):
    """A wrong field: a path from the params, or the name of a header."""

    field: str
    description: str


class ErrorData(Struct, kw_only=True):
    """The reason of an error. Further members are facts of the error, such as `taskId`."""

    reason: Text
    retryable: bool | UnsetType = UNSET
    """With AGENT_UNAVAILABLE alone: false if there is no such agent."""
    violations: list[Violation] | UnsetType = UNSET


class ErrorObject(Struct, kw_only=True):
    """An error of JSON-RPC."""

    code: int
    message: str
    data: ErrorData


class ErrorAnswer(Struct, kw_only=True):
    """The answer to a call that failed or was refused, and the last event of a stream that failed."""

    jsonrpc: Literal["2.0"]
    id: str | int | None
    error: ErrorObject


# ------------------------------------------------------------------- schemas

_FILES: dict[str, tuple[type[Struct], ...]] = {
    "card": (AgentCard,),
    "negotiate": (NegotiateParams, NegotiateAnswer),
    "invoke": (Call, Answer),
    "errors": (ErrorAnswer,),
}


def schema_of(kind: type[Struct]) -> Json:
    """Return the JSON Schema of a type, as cards show that of results."""
    return complete([kind])


def complete(kinds: list[type[Struct]]) -> Json:
    """Return the schema of some types as one, with the types inside of them."""
    schemas, named = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    whole: Json = dict(schemas[0]) if len(schemas) == 1 else {"anyOf": list(schemas)}
    return whole | {"$defs": named}


SCHEMAS: dict[str, Json] = {
    name: {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": f"ADR-002: {name}"}
    | complete(list(kinds))
    for name, kinds in _FILES.items()
}
"""The published schemas, by the name of their file."""
