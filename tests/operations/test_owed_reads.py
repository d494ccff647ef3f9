"""Long reads that are owed: no limit refuses them, and they have none of other owners refused."""

import pytest

from tasks_app.database.errors import Busy
from tasks_app.database.groups import do_group
from tasks_app.database.lanes import SharedLane
from tasks_app.database.waits import Entry
from tasks_app.database.work import DoOwed, DoSlowly
from tests.conftest import PATIENCE

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


def test_owed_reads_of_one_owner_have_no_reads_of_others_refused() -> None:
    lane = SharedLane("slow", do_group, most=2, most_of_owner=9)
    assert lane.put([Entry(DoOwed(lambda: None, 1)) for _ in range(5)]) == []
    assert lane.put([Entry(DoSlowly(lambda: None, owner)) for owner in (2, 3)]) == []
    ((_, error),) = lane.put([Entry(DoSlowly(lambda: None, 4))])
    assert isinstance(error, Busy)
    lane.start()
    lane.stop()
    lane.join(PATIENCE)
    assert (lane.size, lane.patient_size, [thread.is_alive() for thread in lane.threads]) == (0, 0, [False])
