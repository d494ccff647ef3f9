"""The methods of SPARC that send a message: its phase and its workflow stand in the configuration and the metadata."""

from functools import partial
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from a2a.dialects.params_0_x import ConfigurationParams, MessageParams, decode_send
from a2a.dialects.schemas import answers_0_x as types
from a2a.dialects.v0_3 import encode_answer
from a2a.errors import InvalidParams
from a2a.language import Method
from a2a.params import check
from a2a.requests import Priority
from a2a.types import Json
from a2a.workflows import PHASES, Phase, SendInPhase, StreamInPhase

PRIORITIES = {priority.name.lower(): priority for priority in Priority}
MAX_NAME = 128
"""Characters of the name of a workflow."""


class PhaseConfigurationParams(ConfigurationParams, rename="camel"):
    """The configuration of a send. Members of SPARC that it lacks here reach the agent in the task's metadata."""

    sparc_phase: str | None = None


class PhaseMetadataParams(Struct, rename="camel"):
    workflow_id: str | None = None
    priority: str | None = None


class SendParams(Struct, rename="camel"):
    message: MessageParams
    configuration: PhaseConfigurationParams | None = None
    metadata: PhaseMetadataParams | None = None


Sending = TypeVar("Sending", SendInPhase, StreamInPhase)
_OF_A2A = frozenset({"acceptedOutputModes", "historyLength", "blocking", "pushNotificationConfig"})
"""The members of the configuration that A2A has."""


def decode_phase(value: Any, field: str) -> Phase:
    """Return the phase of that name. Raises InvalidParams."""
    try:
        return Phase(value)
    except ValueError:
        raise InvalidParams((field, f"must be one of {', '.join(PHASES)}")) from None


def decode_workflow(value: str, field: str) -> str:
    """Return the name of a workflow. Raises InvalidParams."""
    if not 1 <= len(value) <= MAX_NAME or not value.isprintable():
        raise InvalidParams((field, f"must have 1 to {MAX_NAME} printable characters"))
    return value


def decode(request: type[Sending], params: Any) -> Sending:
    """Decode the params of a send. The configuration of SPARC becomes metadata of the task. Raises InvalidParams."""
    sending = decode_send(request, params)
    wire = check(params, SendParams)
    configuration, metadata = wire.get("configuration") or {}, wire.get("metadata") or {}
    phase, workflow = configuration.get("sparcPhase"), metadata.get("workflowId")
    own: Json = {name: value for name, value in configuration.items() if name not in _OF_A2A}
    return replace(
        sending,
        phase=None if phase is None else decode_phase(phase, "configuration.sparcPhase"),
        workflow=None if workflow is None else decode_workflow(workflow, "metadata.workflowId"),
        priority=_priority(metadata.get("priority")),
        metadata=(own | metadata) or None,
    )


def decode_submit(params: Any) -> SendInPhase:
    """Decode the params of tasks/submit: a send that is answered with the task at once. Raises InvalidParams."""
    return replace(decode(SendInPhase, params), return_immediately=True, queued=True)


def _priority(value: str | None) -> Priority:
    if value is None:
        return Priority.NORMAL
    if value not in PRIORITIES:
        raise InvalidParams(("metadata.priority", f"must be one of {', '.join(PRIORITIES)}"))
    return PRIORITIES[value]


METHODS = {
    "message/send": Method(
        request=SendInPhase,
        decode=partial(decode, SendInPhase),
        encode=encode_answer,
        params=SendParams,
        result=types.SEND_RESULT,
    ),
    "message/stream": Method(
        request=StreamInPhase,
        decode=partial(decode, StreamInPhase),
        encode=encode_answer,
        params=SendParams,
        result=types.EVENT,
    ),
    "tasks/submit": Method(
        request=SendInPhase, decode=decode_submit, encode=encode_answer, params=SendParams, result=types.Task
    ),
}
"""The methods that send a message."""
