"""The thread that wakes workers through the broker outlives whatever the broker does."""

from types import SimpleNamespace
from typing import Any

import pytest

from tasks_app.hints import dispatch


class Broken:
    """A connection whose end fails."""

    def __enter__(self) -> "Broken":
        return self

    def __exit__(self, *error: object) -> None:
        raise OSError("the broker is gone")


def test_an_error_at_the_end_of_a_connection_does_not_end_the_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "celery_app", SimpleNamespace)
    monkeypatch.setattr(dispatch, "connection_of", lambda app: Broken())
    monkeypatch.setattr(dispatch, "PATIENCE", 0.0)
    one = dispatch.CeleryDispatcher()
    connections: list[Any] = []

    def publish_all(app: object, connection: Any) -> None:
        connections.append(connection)
        if len(connections) == 3:
            one.stopping.set()

    monkeypatch.setattr(one, "_publish_all", publish_all)
    one._run()
    assert len(connections) == 3
    assert one.trouble
