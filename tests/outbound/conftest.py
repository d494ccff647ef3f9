"""Settings of a production, and names that stand for what a test says."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tasks_app.outbound import policy


@pytest.fixture(autouse=True)
def production(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = False
    settings.A2A_OUTBOUND_HOSTS = []


def answers(*numbers: str) -> policy.Answers:
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (number, 0)) for number in numbers]


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[list[str]]], list[str]]:
    """Return a function that sets the answers for a name, look by look, and gives the names looked up."""
    asked: list[str] = []

    def set_to(looks: list[list[str]]) -> list[str]:
        async def lookup(host: str, port: int, _: Any) -> policy.Answers:
            asked.append(host)
            return answers(*(looks.pop(0) if len(looks) > 1 else looks[0]))

        monkeypatch.setattr(policy, "lookup", lookup)
        return asked

    return set_to


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Give hangs.example a name server that does not answer, and count the questions."""
    asked, over, real = threading.Semaphore(0), threading.Event(), socket.getaddrinfo

    def getaddrinfo(host: str, *more: Any, **named: Any) -> Any:
        if host.endswith("hangs.example"):
            asked.release()
            over.wait(60)
            raise socket.gaierror
        return real(host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    yield asked
    over.set()
