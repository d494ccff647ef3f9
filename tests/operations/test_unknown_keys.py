"""A flood of unknown keys: each costs a small statement, and keys that are stored are found as before."""

import pytest

from tasks_app.callers import access
from tasks_app.callers.access import MANY_MISSES, Misses
from tests.conftest import Person
from tests.support.callers import find_callers

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.storage]


@pytest.fixture(autouse=True)
def misses(monkeypatch: pytest.MonkeyPatch) -> Misses:
    monkeypatch.setattr(access, "misses", Misses())
    return access.misses


def look_up(*keys: str) -> list[str | None]:
    callers = find_callers(keys)
    return [caller.name if caller else None for caller in callers]


def test_keys_are_found_during_a_flood_as_before(owner: Person, misses: Misses) -> None:
    before = look_up("wrong"), look_up(owner.key), look_up("wrong", owner.key)
    misses.count(MANY_MISSES)
    assert (look_up("wrong"), look_up(owner.key), look_up("wrong", owner.key)) == before
    assert before == ([None], [owner.caller.name], [None, owner.caller.name])


def test_unknown_keys_alone_make_a_flood(misses: Misses, owner: Person) -> None:
    for number in range(MANY_MISSES):
        assert look_up(f"wrong-{number}", owner.key)[0] is None
    assert not misses.is_flood()
    misses.count(MANY_MISSES - 1)
    assert not misses.is_flood()
    look_up("wrong")
    assert misses.is_flood()


def test_a_flood_is_over_two_seconds_after_its_end(misses: Misses, monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = [5.0, 6.9, 7.0]
    monkeypatch.setattr(access, "monotonic", lambda: seconds[0])
    misses.count(MANY_MISSES)
    floods = []
    while seconds:
        floods.append(misses.is_flood())
        del seconds[0]
    assert floods == [True, True, False]
