"""The state machine, walked pair by pair."""

from itertools import product

import pytest

from a2a.states import INTERRUPTED, QUIET, TERMINAL, TRANSITIONS, TaskState

S = TaskState
ENDS = {S.COMPLETED, S.FAILED, S.CANCELED, S.REJECTED}
ALLOWED = {
    S.SUBMITTED: {S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED} | ENDS,
    S.WORKING: {S.SUBMITTED, S.WORKING, S.INPUT_REQUIRED, S.AUTH_REQUIRED} | ENDS,
    S.INPUT_REQUIRED: {S.SUBMITTED} | ENDS,
    S.AUTH_REQUIRED: {S.SUBMITTED, S.WORKING} | ENDS,
}


@pytest.mark.parametrize(("old", "new"), list(product(TaskState, TaskState)))
def test_a_move_is_allowed_or_not(old: TaskState, new: TaskState) -> None:
    assert (new in TRANSITIONS[old]) == (new in ALLOWED.get(old, set()))


def test_the_specification_knows_eight_states() -> None:
    assert len(TaskState) == 8
    assert set(TRANSITIONS) == set(TaskState)


def test_a_task_that_ended_never_changes() -> None:
    assert ENDS == TERMINAL
    assert all(not TRANSITIONS[state] for state in TERMINAL)


def test_every_other_task_can_end_in_every_way() -> None:
    assert all(TRANSITIONS[state] >= TERMINAL for state in set(TaskState) - TERMINAL)


def test_a_task_that_waits_for_its_caller_has_not_ended() -> None:
    assert {S.INPUT_REQUIRED, S.AUTH_REQUIRED} == INTERRUPTED
    assert not INTERRUPTED & TERMINAL
    assert QUIET == INTERRUPTED | TERMINAL


def test_every_state_can_be_reached_from_the_first() -> None:
    reached, frontier = {S.SUBMITTED}, {S.SUBMITTED}
    while frontier:
        frontier = {new for old in frontier for new in TRANSITIONS[old]} - reached
        reached |= frontier
    assert reached == set(TaskState)
