"""The caps of what an owner has open, which several processes count at the same moment."""

from contextlib import ExitStack
from typing import Any

import pytest
from django.db import transaction

from a2a.batches import BatchInput, ExecuteBatch
from a2a.errors import RateLimited
from a2a.requests import Request, StartSharedStream
from a2a.workflows import Phase, SetPhase
from tests.conftest import Person, until
from tests.database.locks import asked_twice, needs_row_locks, under_way
from tests.operations.asking import ask, message
from tests.support.lanes import inline_lanes

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage, pytest.mark.usefixtures("lanes")]


def batch() -> Request:
    return ExecuteBatch(operation="gate", items=(BatchInput(message=message()),))


@needs_row_locks
@pytest.mark.parametrize(
    ("cap", "first", "second"),
    [
        ("A2A_OWNER_BATCHES", batch(), batch()),
        ("A2A_OWNER_SHARED_STREAMS", StartSharedStream(), StartSharedStream()),
        ("A2A_OWNER_WORKFLOWS", *(SetPhase(workflow=name, phase=Phase.SPECIFICATION) for name in "ab")),
    ],
    ids=["batches", "shared streams", "workflows"],
)
def test_a_cap_counts_what_another_process_has_not_committed(
    owner: Person, settings: Any, monkeypatch: pytest.MonkeyPatch, cap: str, first: Request, second: Request
) -> None:
    setattr(settings, cap, 1)
    came_again = asked_twice(monkeypatch)
    with ExitStack() as first_transaction:
        first_transaction.enter_context(transaction.atomic())
        with inline_lanes():  # They use the connection of this thread.
            ask(owner, first)
        with under_way(lambda: ask(owner, second)) as results:
            until(lambda: came_again() or results, "the second caller waits, or has its answer")
            first_transaction.close()
    (refusal,) = results
    assert isinstance(refusal, RateLimited), refusal
