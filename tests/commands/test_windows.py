"""Lists of commands from a time on and until a time, as the operators' API has them: what happened in the night?"""

import pytest

from tasks_app import clock
from tasks_app.models import Principal, Refusals
from tasks_app.operators.audit import Change, record_acts
from tests.operators.people import OPS
from tests.support.commands import printed, run
from tests.support.operators import exchange, task

pytestmark = [pytest.mark.django_db, pytest.mark.storage]
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


@pytest.mark.parametrize("words", LISTS)
def test_a_window_that_ends_before_it_begins_is_refused(words: str) -> None:
    assert "--since must be earlier than --until" in run(*words.split(), "--since", "1h", "--until", "2h").errors
