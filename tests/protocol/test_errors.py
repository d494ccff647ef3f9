"""Every error in every dialect: one code, one shape (docs/protocol.md#errors)."""

from itertools import product

import orjson
import pytest

from a2a import errors
from a2a.dialects import rest_0_x, v1_0
from a2a.envelopes import bare
from a2a.language import Dialect
from a2a.languages import DIALECTS
from tests.protocol.speaking import BY_VERSION, WAITS, neutral

SPECIFIED = {
    errors.ParseError: (-32700, "PARSE_ERROR"),
    errors.InvalidRequest: (-32600, "INVALID_REQUEST"),
    errors.MethodNotFound: (-32601, "METHOD_NOT_FOUND"),
    errors.InvalidParams: (-32602, "INVALID_PARAMS"),
    errors.Internal: (-32603, "INTERNAL_ERROR"),
    errors.TaskNotFound: (-32001, "TASK_NOT_FOUND"),
    errors.TaskNotCancelable: (-32002, "TASK_NOT_CANCELABLE"),
    errors.PushNotSupported: (-32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"),
    errors.UnsupportedOperation: (-32004, "UNSUPPORTED_OPERATION"),
    errors.ContentTypeNotSupported: (-32005, "CONTENT_TYPE_NOT_SUPPORTED"),
    errors.InvalidAgentResponse: (-32006, "INVALID_AGENT_RESPONSE"),
    errors.ExtendedCardNotConfigured: (-32007, "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
    errors.ExtensionSupportRequired: (-32008, "EXTENSION_SUPPORT_REQUIRED"),
    errors.VersionNotSupported: (-32009, "VERSION_NOT_SUPPORTED"),
}
"""Fact sheet 4.1."""
OURS = {
    errors.IdempotencyConflict: -32602,
    errors.TaskEnded: -32004,
    errors.SharedStreamNotFound: -32001,
    errors.SharedStreamClosed: -32004,
    errors.MemoryNotFound: -32001,
    errors.WorkflowNotFound: -32001,
    errors.PhaseRefused: -33001,
    errors.Timeout: -38007,
    errors.ExpiredKey: -38009,
    errors.UnknownAgent: -38005,
    errors.BudgetExceeded: -38006,
    errors.Unauthenticated: -38009,
    errors.MissingScope: -38010,
    errors.PermissionDenied: -38011,
    errors.Timeout: -38007,
    errors.RateLimited: -38008,
    errors.Unavailable: -38013,
}
"""Numbers of errors for which A2A has none."""
WORDS = {
    errors.TaskEnded: "UNSUPPORTED_OPERATION",
    errors.ExpiredKey: "UNAUTHENTICATED",
    errors.SharedStreamNotFound: "TASK_NOT_FOUND",
    errors.MemoryNotFound: "TASK_NOT_FOUND",
    errors.SharedStreamClosed: "UNSUPPORTED_OPERATION",
    errors.WorkflowNotFound: "TASK_NOT_FOUND",
}
"""Reasons of errors that are finer than the words of A2A."""
CODES: dict[type[errors.Error], int] = {error: code for error, (code, _) in SPECIFIED.items()} | OURS
EXCEPTIONS: dict[tuple[str, type[errors.Error]], int] = {
    # 0.x has no such error: the request is wrong (docs/protocol.md#sending).
    ("a2a-0.3", errors.ExtensionSupportRequired): -32600,
    ("a2a-0.2", errors.ExtensionSupportRequired): -32600,
}

every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
every_pair = pytest.mark.parametrize(("dialect", "error"), list(product(DIALECTS, errors.ALL)))


def test_no_error_is_forgotten() -> None:
    assert set(CODES) == set(errors.ALL)


@pytest.mark.parametrize("error", SPECIFIED)
def test_a_reason_is_the_specified_one(error: type[errors.Error]) -> None:
    assert error.reason == SPECIFIED[error][1]


def test_reasons_are_unique() -> None:
    assert len({error.reason for error in errors.ALL}) == len(errors.ALL)


@every_pair
def test_every_error_has_its_code(dialect: Dialect, error: type[errors.Error]) -> None:
    expected = EXCEPTIONS.get((dialect.name, error), CODES[error])
    assert dialect.error(error())["code"] == expected


@every_pair
def test_the_message_is_the_sentence(dialect: Dialect, error: type[errors.Error]) -> None:
    assert dialect.error(error(taskId="t"))["message"] == error.sentence


@every_pair
def test_every_shape_is_json_with_known_members(dialect: Dialect, error: type[errors.Error]) -> None:
    wire = orjson.loads(orjson.dumps(dialect.error(error(taskId="t"))))
    assert set(wire) == {"code", "message", "data"}
    facts = {"taskId": "t"} | WAITS.get(error, {})
    if dialect.version == "1.0":
        assert wire["data"] == [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": WORDS.get(error, error.reason),
                "domain": "a2a-protocol.org",
                "metadata": facts,
            }
        ]
    else:
        assert wire["data"] == {"reason": WORDS.get(error, error.reason)} | facts


@every_dialect
def test_an_error_of_the_envelope_without_facts_has_no_data(dialect: Dialect) -> None:
    for error in (errors.ParseError, errors.InvalidRequest, errors.MethodNotFound, errors.InvalidParams):
        assert set(dialect.error(error())) == {"code", "message"}


def test_an_a2a_error_of_1_0_always_has_details() -> None:
    assert BY_VERSION["1.0"].error(errors.TaskNotFound())["data"][0]["reason"] == "TASK_NOT_FOUND"


def test_an_error_of_0_x_without_facts_has_no_data() -> None:
    for dialect in (BY_VERSION["0.3"], BY_VERSION["0.2"]):
        assert "data" not in dialect.error(errors.TaskNotFound())


def test_violations_name_their_fields_in_each_shape() -> None:
    error = errors.InvalidParams(("message.parts", "is required"), ("id", "must be a string"))
    violations = [
        {"field": "message.parts", "description": "is required"},
        {"field": "id", "description": "must be a string"},
    ]
    new, old, oldest = (BY_VERSION[version].error(error)["data"] for version in ("1.0", "0.3", "0.2"))
    assert new == [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
    assert old == oldest == {"reason": "INVALID_PARAMS", "violations": violations}


def test_the_message_has_the_first_violation_for_clients_that_show_nothing_else() -> None:
    error = errors.InvalidParams(("pageSize", "must be from 1 to 100, not 1000"), ("id", "is required"))
    told = "Invalid parameters: pageSize must be from 1 to 100, not 1000"
    assert [dialect.error(error)["message"] for dialect in DIALECTS] == [told] * len(DIALECTS)
    new, old = (orjson.loads(bare.failure(None, error, one).payload) for one in (v1_0.DIALECT, rest_0_x.PROTO))
    assert new["error"]["message"] == old["message"] == told


def test_the_message_has_the_detail_for_clients_that_show_nothing_else() -> None:
    error = errors.TaskEnded(taskId="t", detail="the task has ended: it is completed")
    told = "This operation is not supported: the task has ended: it is completed"
    assert [dialect.error(error)["message"] for dialect in DIALECTS] == [told] * len(DIALECTS)
    fault = errors.Internal(reference="018f")
    assert {dialect.error(fault)["message"] for dialect in DIALECTS} == {"Internal error: reference 018f"}


@pytest.mark.parametrize(
    ("error", "detail"),
    [
        (errors.MissingScope(required="tasks:write", provided="tasks:read"), "tasks:write"),
        (
            errors.BudgetExceeded(budget="X-Budget-USD", available="0.001", required="0.01", currency="USD"),
            "at least 0.01 USD is required, and 0.001 USD is available (X-Budget-USD)",
        ),
        (errors.BudgetExceeded(detail="The task has cost 2 USD."), "The task has cost 2 USD."),
    ],
    ids=["scope", "budget of the call", "budget of a run"],
)
def test_the_message_names_what_the_caller_lacks(error: errors.Error, detail: str) -> None:
    for dialect in DIALECTS:
        assert dialect.error(error)["message"] == f"{error.sentence}: {detail}"


def test_a_violation_that_is_a_sentence_stands_behind_a_colon() -> None:
    told = errors.InvalidParams(("message.parts", "At least one part is required")).message
    assert told == "Invalid parameters: message.parts: At least one part is required"


@pytest.mark.parametrize("kind", ["agent", "skill"])
def test_an_unknown_agent_is_named_with_the_place_of_the_names(kind: str) -> None:
    told = f'No such agent or skill: there is no {kind} "nobody"; GET /agents/ lists the agents and their skills'
    error = errors.UnknownAgent(**{kind: "nobody"})
    assert {dialect.error(error)["message"] for dialect in DIALECTS} == {told}
    assert neutral(error) == {"code": -38005, "message": told}


def test_the_name_of_a_field_may_be_long_and_the_message_is_not() -> None:
    assert len(errors.InvalidParams(("x" * 100_000, "must not hold the character U+0000")).message) < 300


def test_neutral_words_hold_no_data() -> None:
    assert neutral(errors.ParseError()) == {"code": -32700, "message": "Invalid JSON payload"}
    assert neutral(errors.InvalidRequest(detail="a batch must have at least one member")) == {
        "code": -32600,
        "message": "Request payload validation error: a batch must have at least one member",
    }
    assert neutral(errors.InvalidParams(("id", "is required"), ("limit", "must be an integer"))) == {
        "code": -32602,
        "message": "Invalid parameters: id is required; limit must be an integer",
    }


def test_neutral_words_tell_only_the_detail() -> None:
    assert neutral(errors.TaskNotFound(taskId="t")) == {"code": -32001, "message": "Task not found"}
