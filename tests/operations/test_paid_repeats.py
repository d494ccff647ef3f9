"""Messages that are sent again to a quick agent that costs money."""

from typing import Any

import pytest

from a2a.run import Run
from tasks_app.models import Reservation, Task
from tasks_app.operations import dispatcher
from tasks_app.runner.quick import play_quickly
from tests.conftest import Person, until
from tests.operations.asking import message, send
from tests.operations.money import amounts, limit
from tests.operations.rows import together

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.mark.usefixtures("lanes")
def test_a_message_sent_again_to_a_quick_agent_costs_nothing(owner: Person) -> None:
    budget = limit(owner, 10)
    for said in (message("0.25"), message("0.25 reply")):
        answers = [send(owner, said, "priced-quick") for _ in range(3)]
        assert answers[0].message == answers[1].message == answers[2].message
        assert answers[0].task == answers[1].task == answers[2].task
    assert (amounts(budget), Reservation.objects.exists()) == ((0, 0.5), False)


@pytest.mark.usefixtures("lanes")
@pytest.mark.parametrize(("agent", "times"), [("priced-quick", 1), ("echo", 2)])
def test_a_message_sent_again_calls_no_quick_agent_that_costs(
    owner: Person, agent: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[Run] = []

    async def play(run: Run, owner_id: int) -> Any:
        runs.append(run)
        return await play_quickly(run, owner_id)

    monkeypatch.setattr(dispatcher, "play_quickly", play)
    said = message("0.25")
    assert send(owner, said, agent).task == send(owner, said, agent).task
    assert len(runs) == times


@pytest.mark.usefixtures("lanes")
def test_a_message_sent_twice_at_once_to_a_quick_agent_is_charged_for_each_run(owner: Person) -> None:
    budget, said = limit(owner, 10), message("0.25")
    together(2, lambda _: send(owner, said, "priced-quick"))
    assert Task.objects.count() == 1
    until(lambda: not Reservation.objects.exists(), "the reservations are settled")
    assert amounts(budget)[0] == 0
    assert amounts(budget)[1] in {0.25, 0.5}, "the one that came later may not have run"
