"""A purge that is told to stop: its act is recorded all the same."""

import os
import signal
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from tasks_app.models import Act
from tests.support.commands import printed

pytestmark = pytest.mark.django_db


@pytest.fixture
def orders() -> Iterator[list[int]]:
    """Give the signals that nothing but this fixture handles: without a handler they would end the tests."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    yield heard
    signal.signal(signal.SIGTERM, before)


def test_a_purge_that_gets_sigterm_is_an_act_too(orders: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    monkeypatch.setattr("tasks_app.upkeep.purge.Deletion.delete_next", stop)
    with pytest.raises(SystemExit) as end:
        printed("a2a", "purge", "--keys", "--before", "1d")
    assert end.value.code == 128 + signal.SIGTERM
    assert orjson.loads(Act.objects.get().after)["message_ids"]["deleted"] == 0
    os.kill(os.getpid(), signal.SIGTERM)
    assert orders == [signal.SIGTERM], "the handler of before is back"
