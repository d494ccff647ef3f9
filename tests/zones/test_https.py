"""The carrier over HTTPS calls no zone whose certificate is not trusted, and says what to do."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from a2a.failures import Failure
from tasks_app.outbound import dialling
from tasks_app.zones import execution
from tasks_app.zones.carriers import NoAnswer, Untrusted
from tasks_app.zones.https import Https
from tests.support.tls import certificate, tls_front

CLOSED = 9
"""A port at which nothing listens."""


@pytest.fixture(autouse=True)
def loopback(settings: Any) -> None:
    settings.A2A_OUTBOUND_LOOPBACK = True


def refusal(file: Path, url: str = "https://localhost:{}") -> str:
    """Return why a zone with a certificate is not called."""

    async def story() -> str:
        async with tls_front(file, CLOSED) as port:
            with pytest.raises(Untrusted) as error:
                await Https(url.format(port), "").carry(b"{}")
            with pytest.raises(Failure, match="has no certificate that this deployment trusts"):
                await execution.call(Https(url.format(port), ""), "get_task", {}, "1")
        return str(error.value)

    return asyncio.run(story())


def trust(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialling, "authorities", lambda: ssl.create_default_context(cafile=str(file)))


def test_a_certificate_of_an_unknown_authority_is_refused(tmp_path: Path) -> None:
    said = refusal(certificate("localhost", tmp_path))
    assert "self-signed certificate" in said
    assert "SSL_CERT_FILE" in said


def test_a_certificate_of_another_host_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate("other.internal", tmp_path)
    trust(file, monkeypatch)
    said = refusal(file)
    assert "Hostname mismatch" in said
    assert "A2A_EXECUTION must have the host name" in said


def test_a_certificate_that_has_ended_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = certificate("localhost", tmp_path, days=-1)
    trust(file, monkeypatch)
    assert "certificate has expired" in refusal(file)


def test_a_zone_that_is_away_gives_no_answer() -> None:
    with pytest.raises(NoAnswer):
        asyncio.run(Https(f"https://localhost:{CLOSED}", "").carry(b"{}"))
