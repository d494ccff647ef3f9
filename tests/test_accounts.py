"""The account of what owners have in flight: caps, refusals, and when another try makes sense."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from a2a.errors import RateLimited, Unavailable
from tasks_app.limits.accounts import LONGEST, Account, Count
from tests.support.accounts import holdings

ANN, BOB, CEM = 1, 2, 3


@pytest.fixture
def account(settings: Any) -> Account:
    settings.A2A_OWNER_STREAMS, settings.A2A_STREAMS = 2, 3
    settings.A2A_OWNER_TASKS, settings.A2A_AGENT_TASKS, settings.A2A_TASKS = 3, 5, 6
    return Account()


@pytest.fixture
def shift(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the clock of the account forward."""
    now = 1_000.0

    def forward(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("tasks_app.limits.accounts.monotonic", lambda: now)
    return forward


def tell(account: Account, **unfinished: int) -> None:
    """A count: of each owner's tasks with one agent, all of which are new."""
    owners = {"ann": ANN, "bob": BOB, "cem": CEM}
    counts = {(owners[name], "slow"): Count(unfinished=much, older=much, before=0) for name, much in unfinished.items()}
    account.end_count(account.begin_count(), counts)


def test_an_owner_at_the_cap_is_refused_and_others_are_not(account: Account) -> None:
    account.take(ANN, "streams", 2)
    with pytest.raises(RateLimited) as refused:
        account.take(ANN, "streams")
    wait = str(refused.value.retry_after)
    assert refused.value.facts == {"limit": "open streams", "most": "2", "retryAfter": wait}
    account.take(BOB, "streams")


def test_the_cap_of_all_is_the_servers_fault_and_not_the_callers(account: Account) -> None:
    account.take(ANN, "streams", 2)
    account.take(BOB, "streams")
    with pytest.raises(Unavailable):
        account.take(CEM, "streams")
    with pytest.raises(Unavailable):
        account.take(None, "streams")


def test_a_refused_amount_is_not_taken(account: Account) -> None:
    with pytest.raises(RateLimited):
        account.take(ANN, "streams", 3)
    account.take(ANN, "streams", 2)
    assert holdings(account) == [("streams", ANN, 2)]


def test_an_amount_that_is_held_no_more_is_given_back_once(account: Account) -> None:
    held = account.hold(ANN, "streams", 2)
    held.release()
    held.release()
    assert holdings(account) == []
    held = account.hold(ANN, "streams")
    del held
    assert holdings(account) == []


def test_without_a_count_every_task_is_admitted(account: Account) -> None:
    for _ in range(20):
        with account.new_work(ANN, "slow"):
            pass


def test_tasks_that_were_stored_since_the_count_are_added_to_it(account: Account) -> None:
    tell(account, ann=1)
    for _ in range(2):
        with account.new_work(ANN, "slow"):
            pass
    with pytest.raises(RateLimited) as refused, account.new_work(ANN, "slow"):
        pass
    wait = str(refused.value.retry_after)
    assert refused.value.facts == {"limit": "unfinished tasks", "most": "3", "retryAfter": wait}
    with account.new_work(BOB, "slow"):
        pass


def test_tasks_that_are_being_stored_take_room(account: Account) -> None:
    tell(account, ann=2)
    with account.new_work(ANN, "slow"), pytest.raises(RateLimited), account.new_work(ANN, "slow"):
        pass


def test_a_task_that_could_not_be_stored_takes_no_room(account: Account) -> None:
    tell(account, ann=2)
    with pytest.raises(OSError, match="gone"), account.new_work(ANN, "slow"):
        raise OSError("gone")
    with account.new_work(ANN, "slow"):
        pass


def test_a_task_stored_while_they_are_counted_is_not_forgotten(account: Account) -> None:
    tell(account, ann=1)
    begun = account.begin_count()
    for _ in range(2):
        with account.new_work(ANN, "slow"):
            pass
    account.end_count(begun, {(ANN, "slow"): Count(unfinished=1, older=1, before=1)})
    with pytest.raises(RateLimited), account.new_work(ANN, "slow"):
        pass


def test_a_task_stored_before_the_count_is_in_it_once(account: Account) -> None:
    tell(account, ann=1)
    with account.new_work(ANN, "slow"):
        pass
    tell(account, ann=2)
    with account.new_work(ANN, "slow"):
        pass


def test_an_agent_and_the_whole_server_have_caps_too(account: Account) -> None:
    tell(account, ann=2, bob=2, cem=1)
    with pytest.raises(Unavailable) as refused, account.new_work(ANN, "slow"):
        pass
    assert refused.value.facts["limit"] == "unfinished tasks of the agent"
    with account.new_work(ANN, "other"):
        pass
    with pytest.raises(Unavailable) as refused, account.new_work(BOB, "other"):
        pass
    assert refused.value.facts["limit"] == "unfinished tasks of all callers"


def test_owners_who_give_nothing_back_leave_some_bytes_to_the_next(account: Account, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES, settings.A2A_BODIES_BYTES = 100, 400
    amounts: Counter[int] = Counter()
    for owner in range(1, 9):
        with suppress(RateLimited, Unavailable):
            while True:
                account.take(owner, "bodies")
                amounts[owner] += 1
    assert list(amounts.values()) == [100, 100, 100, 50, 25, 13, 6, 3]


def test_a_holding_is_measured_and_is_given_back_once(account: Account, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES = 1_000
    held = account.hold(1, "bodies", 900)
    for size, counted in ((300, 300), (400, 400), (1_001, 1_000)):
        held.measure(size)
        assert (account.amounts["bodies", 1], account.totals["bodies"]) == (counted, counted)
    held.release()
    held.measure(5)
    held.release()
    assert (account.amounts["bodies", 1], account.totals["bodies"]) == (0, 0)


def test_an_owed_answer_beyond_the_share_of_its_owner_counts_whole(account: Account, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES = 20_000
    held = account.hold_owed(1, 60_000)
    for size, counted in ((50_000, 50_000), (80_000, 50_000)):
        held.measure(size)
        assert account.amounts["bodies", 1] == counted
    held.release()


def test_bodies_that_are_larger_than_was_expected_take_no_room_of_other_owners(account: Account, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES, settings.A2A_BODIES_BYTES = 1_000, 4_000
    bodies = [account.hold(ANN, "bodies", 250) for _ in range(4)]
    for body in bodies:
        body.measure(1_000)
    assert (account.amounts["bodies", ANN], account.totals["bodies"]) == (4_000, 1_000)
    account.hold(BOB, "bodies", 1_000).release()
    with pytest.raises(RateLimited):
        account.take(ANN, "bodies")
    for body in bodies:
        body.measure(100)
    assert (account.amounts["bodies", ANN], account.totals["bodies"]) == (400, 400)
    for body in bodies:
        body.release()
    assert (account.amounts, account.excess, account.totals["bodies"]) == ({}, {}, 0)


def test_owed_answers_beyond_the_share_of_their_owner_take_no_room_of_others(account: Account, settings: Any) -> None:
    settings.A2A_OWNER_BODY_BYTES, settings.A2A_BODIES_BYTES = 20_000, 80_000
    answers = [account.hold_owed(ANN, 60_000) for _ in range(2)]
    account.hold(BOB, "bodies", 20_000).release()
    with pytest.raises(RateLimited):
        account.check_bodies(ANN)
    for answer in answers:
        answer.release()
    account.check_bodies(ANN)
    assert (account.amounts, account.excess, account.totals["bodies"]) == ({}, {}, 0)


def test_an_old_count_refuses_nobody(account: Account, shift: Callable[[float], None]) -> None:
    tell(account, ann=3)
    shift(11)
    with account.new_work(ANN, "slow"):
        pass


def test_the_time_to_come_again_is_that_in_which_tasks_end(account: Account, shift: Callable[[float], None]) -> None:
    tell(account, ann=3)
    shift(4)
    # Two of three have ended, and others came: half a task a second.
    account.end_count(account.begin_count(), {(ANN, "slow"): Count(unfinished=3, older=3, before=1)})
    waits = []
    for _ in range(3):
        with pytest.raises(RateLimited) as refused, account.new_work(ANN, "slow"):
            pass
        waits.append(refused.value.retry_after)
    assert waits == [2, 4, 6], "those that were refused come again, too"


def test_where_nothing_ends_the_longest_wait_is_told(account: Account, shift: Callable[[float], None]) -> None:
    tell(account, ann=3)
    shift(1)
    account.end_count(account.begin_count(), {(ANN, "slow"): Count(unfinished=3, older=3, before=3)})
    with pytest.raises(RateLimited) as refused, account.new_work(ANN, "slow"):
        pass
    assert refused.value.retry_after == LONGEST
