"""The errors of the core: a class for each, with a reason and facts, and without any number of a protocol."""

import json
import re
from pathlib import Path

import pytest
from django.db import OperationalError

import tasks_app
from a2a import errors
from tasks_app.database.errors import Busy
from tasks_app.transports.faults import fault_with

ROOMS = ("callers", "database", "event_log", "hints", "models", "operations", "runner")
"""The rooms that perform requests."""
SEED = {
    "TaskNotFound": errors.TaskNotFound,
    "InvalidStateTransition": errors.TaskNotCancelable,
    "CoordinatorError": errors.Unavailable,
    "UnknownSkill": errors.UnknownAgent,
    "SerdeError": errors.Internal,
    "IoError": errors.Internal,
    "InternalError": errors.Internal,
}
"""The class for each error of VAPORA (docs/systems/vapora.md#errors)."""


def sources() -> list[Path]:
    room = Path(tasks_app.__file__).parent
    return [Path(errors.__file__), *(path for name in ROOMS for path in (room / name).rglob("*.py"))]


@pytest.mark.requirement("VAPORA-01")
def test_the_core_knows_no_envelope_and_no_number_of_an_error() -> None:
    paths = sources()
    assert len(paths) > 50
    wrong = [path.name for path in paths if re.search(r"a2a\.envelopes|-3[28]\d{3}\b", path.read_text("utf-8"))]
    assert wrong == []


@pytest.mark.requirement("VAPORA-02")
@pytest.mark.parametrize("name", SEED)
def test_each_error_of_vapora_is_a_class_with_a_reason(name: str) -> None:
    error = SEED[name](taskId="t")
    assert isinstance(error, errors.Error)
    assert re.fullmatch("[A-Z_]+", error.reason)
    wait = {"retryAfter": "1"} if isinstance(error, errors.Unavailable | errors.RateLimited) else {}
    assert (error.message, error.facts) == (error.sentence, {"taskId": "t"} | wait)


@pytest.mark.requirement("VAPORA-02")
@pytest.mark.parametrize(
    ("cause", "kind"),
    [
        (json.JSONDecodeError("no value", "", 0), errors.Internal),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "a lone surrogate"), errors.Internal),
        (OSError("the disk is full"), errors.Internal),
        (KeyError("surprise"), errors.Internal),
        (OperationalError("the server closed the connection"), errors.Unavailable),
        (Busy(), errors.Unavailable),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_faults_of_ours_become_domain_errors_without_their_words(cause: Exception, kind: type[errors.Error]) -> None:
    error = fault_with("a call failed", cause, "018f")
    assert type(error) is kind
    wait = {"retryAfter": "1"} if kind is errors.Unavailable else {}
    assert (error.message, error.facts) == (kind.sentence, {"reference": "018f"} | wait)
