"""Lists of commands from a time on and until a time, as the operators' API has them: what happened in the night?"""

from typing import Any

import pytest

from tasks_app import clock
from tasks_app.models import (
    Delivery,
    MemoryEntry,
    Principal,
    Receiver,
    Refusals,
    SharedStream,
    SlackQuestion,
    Webhook,
    Workflow,
)
from tasks_app.operators.audit import Change, record_acts
from tests.operators.people import OPS
from tests.operators.tenants import Furniture
from tests.support.commands import printed, run
from tests.support.operators import exchange, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
OTHERS = {
    "a2a workflows list": Workflow,
    "a2a shared-streams list": SharedStream,
    "a2a slack questions": SlackQuestion,
    "a2a memory list": MemoryEntry,
    "a2a receivers list": Receiver,
    "deliveries list": Delivery,
    "deliveries webhooks": Webhook,
}
"""Other lists, with their tables."""
COLUMNS = {MemoryEntry: "expires_at", Receiver: "asked_at"}
"""The times of tables that have no time of creation, or list by another one."""
LISTS = ("exchanges list", "tasks list", "a2a acts", "a2a refusals", "a2a batches list")


@pytest.mark.parametrize("words", LISTS)
def test_a_list_ends_with_a_time(words: str, olga: Principal) -> None:
    exchange(olga)
    record_acts(OPS, "cancel", Change(task(olga)))
    Refusals.objects.create(minute=clock.now(), address="192.0.2.7", unauthenticated=1)
    assert printed(*words.split(), "--until", "1h") == []
    rows = printed(*words.split(), "--since", "1h", "--until", "2100-01-01")
    assert rows == printed(*words.split())
    assert len(rows) == (0 if "batches" in words else 1)


@pytest.mark.parametrize(("words", "model"), OTHERS.items())
def test_a_list_is_cut_at_both_ends(words: str, model: Any) -> None:
    row = Furniture("acme", "mine7").rows[model]
    column = COLUMNS.get(model, "created_at")
    model.objects.filter(pk=row.pk).update(**{column: clock.now()})
    for window, count in (
        (("--since", "1h", "--until", "2100-01-01"), 1),
        (("--until", "1h"), 0),
        (("--since", "2100-01-01"), 0),
    ):
        assert len(printed(*words.split(), *window)) == count, window


@pytest.mark.parametrize("words", [*LISTS, *OTHERS])
def test_a_window_that_ends_before_it_begins_is_refused(words: str) -> None:
    assert "--since must be earlier than --until" in run(*words.split(), "--since", "1h", "--until", "2h").errors
